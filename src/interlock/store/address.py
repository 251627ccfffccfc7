"""How a database is named to people: without user, password or options."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

UNREADABLE = "an address that cannot be read"


def describe_address(dsn: str) -> str:
    """`host:port/database` of a DSN, for errors and events; each of several hosts, and a socket by its folder."""
    try:
        parts = urlsplit(dsn)
        if parts.scheme not in {"postgresql", "postgres"} or "@" in parts.path + parts.query or parts.fragment:
            # A password with a raw / ? or # in it ends the host part early: what follows would show its rest.
            return UNREADABLE
        options = parse_qs(parts.query)
        hosts = parts.netloc.rpartition("@")[2] or options.get("host", [""])[0]
        names, ports = hosts.split(","), [int(port) for port in options.get("port", ["5432"])[0].split(",")]
        each_with_its_port = zip(names, ports * len(names) if len(ports) == 1 else ports, strict=True)
        places = ",".join(_place(unquote(host), port) for host, port in each_with_its_port)
        return f"{places}/{parts.path.lstrip('/') or 'postgres'}"
    except ValueError:
        return UNREADABLE


def _place(host: str, port: int) -> str:
    if host.startswith("/"):
        folder, _, own = host.partition(":")
        return f"{folder}:{own or port}"
    named = urlsplit(f"//{host}")
    return f"{named.hostname or 'localhost'}:{named.port or port}"
