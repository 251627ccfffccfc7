"""Benchmarks: `python -m bench [NAME ...]`. See bench/README.md on how to add one."""
