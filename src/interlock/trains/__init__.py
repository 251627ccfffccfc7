"""Trains: named, typed units of work, declared once and run anywhere."""
