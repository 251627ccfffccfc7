from __future__ import annotations

import pytest

from interlock.store.address import describe_address
from interlock.store.database import Database
from interlock.store.settings import StoreSettings


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://ada:secret@db.example:6432/app", "db.example:6432/app"),
        ("postgres://ada:secret@db.example/app", "db.example:5432/app"),
        ("postgresql://ada@db.example", "db.example:5432/postgres"),
        ("postgresql://ada:p%40ss%2Fword@db.example/app", "db.example:5432/app"),
        ("postgresql://db.example/app?user=ada&password=secret", "db.example:5432/app"),
        ("postgresql:///app?host=/var/run/postgresql&password=secret", "/var/run/postgresql:5432/app"),
        ("postgresql:///app?host=/run/pg&port=6432", "/run/pg:6432/app"),
        ("postgresql://ada:secret@%2Frun%2Fpg/app", "/run/pg:5432/app"),
        ("postgresql://ada:secret@%2Frun%2Fpg:6432/app", "/run/pg:6432/app"),
        ("postgresql://ada:secret@one:1,two:2/app", "one:1,two:2/app"),
        ("postgresql://ada:secret@[::1]:2,one/app?port=7", "::1:2,one:7/app"),
        ("postgresql:///app?host=one,two&port=1,2", "one:1,two:2/app"),
        ("postgresql:///app?host=one,two&port=7", "one:7,two:7/app"),
        ("postgresql://", "localhost:5432/postgres"),
        ("postgresql://ada:secret@[::1]:5433/app", "::1:5433/app"),
    ],
)
def test_an_address_is_shown_as_host_port_and_database(dsn, shown):
    assert describe_address(dsn) == shown


@pytest.mark.parametrize(
    "dsn",
    [
        "host=db user=ada password=secret dbname=app",
        "postgresql://ada:sec/ret@db/app",
        "postgresql://ada:12/secret@db/app",
        "postgresql://ada:12?secret@db/app",
        "postgresql://ada:12#secret@db/app",
        "postgresql://ada:x@secret/y@db/app",
        "postgresql://ada:x@secret?y@db/app",
        "postgresql://ada:x@secret#y@db/app",
        "postgresql://ada:secret@db:port/app",
        "postgresql://ada:secret@db:99999999/app",
        "postgresql://ada:secret@[db/app",
        "postgresql://db/app?port=secret",
        "postgresql://db/app?host=one,two&port=1,secret",
        "postgresql:///app?host=one,two&port=1,2,3&password=secret",
        "postgresql://ada:secret@one:1,two:port/app",
        "ada:secret@db/app",
        "secret",
        "",
    ],
)
def test_an_odd_address_shows_neither_user_nor_password(dsn):
    shown = describe_address(dsn)
    assert "ada" not in shown
    assert "secret" not in shown
    assert Database(dsn, StoreSettings()).where == shown
