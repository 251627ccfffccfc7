"""How a database is named to people: without user, password or options."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit


def describe_address(dsn: str) -> str:
    """`host:port/database` of a DSN, for errors and events."""
    try:
        parts = urlsplit(dsn)
        host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        return f"{host}:{parts.port or 5432}/{parts.path.lstrip('/') or 'postgres'}"
    except ValueError:
        return "an address that cannot be read"
