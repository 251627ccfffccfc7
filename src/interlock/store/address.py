"""How a database is named to people: without user, password or options."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

UNREADABLE = "an address that cannot be read"


def describe_address(dsn: str) -> str:
    """`host:port/database` of a DSN, for errors and events."""
    try:
        parts = urlsplit(dsn)
        if parts.scheme not in {"postgresql", "postgres"} or "@" in parts.path + parts.query or parts.fragment:
            # A password with a raw / ? or # in it ends the host part early: what follows would show its rest.
            return UNREADABLE
        host = parts.hostname or parse_qs(parts.query).get("host", ["localhost"])[0]
        return f"{host}:{parts.port or 5432}/{parts.path.lstrip('/') or 'postgres'}"
    except ValueError:
        return UNREADABLE
