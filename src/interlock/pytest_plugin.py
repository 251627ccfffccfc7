"""The pytest plugin: an app on a database of its own for every test.

`interlock_app` in the pytest settings names the app (`module:attribute`). Its databases are made on an embedded
PostgreSQL that lives as long as the test run, or on the server that `interlock_dsn` or INTERLOCK_TEST_DSN names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.app import Interlock
    from interlock.store.scratch import ScratchDatabases


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("interlock_app", "The app of the fixture interlock_app, as module:attribute.", default="")
    parser.addini("interlock_dsn", "The server for test databases; default: an embedded PostgreSQL.", default="")


@pytest.fixture(scope="session")
def interlock_databases(pytestconfig: pytest.Config) -> Iterator[ScratchDatabases]:
    """Where the databases of the tests come from."""
    from interlock.runtime.portal import portal  # noqa: PLC0415  only those who use it pay for it
    from interlock.store.scratch import ScratchDatabases  # noqa: PLC0415  see above

    with _server(os.environ.get("INTERLOCK_TEST_DSN") or pytestconfig.getini("interlock_dsn")) as dsn:
        databases = ScratchDatabases(dsn, _chosen_app(pytestconfig).settings.store.schema)
        portal.call(databases.prepare)
        yield databases
        portal.call(databases.close)


@pytest.fixture
def interlock_app(pytestconfig: pytest.Config, interlock_databases: ScratchDatabases) -> Iterator[Interlock]:
    """The app, on an empty database that has the schema; `interlock_app.dsn` is its address."""
    from interlock.runtime.portal import portal  # noqa: PLC0415  see interlock_databases

    app, dsn = _chosen_app(pytestconfig), portal.call(interlock_databases.create)
    before, clock = app.settings, app.clock
    app.settings = replace(before, store=replace(before.store, dsn=dsn))
    try:
        yield app
    finally:
        portal.call(app.aclose)
        app.settings, app.clock = before, clock
        portal.call(interlock_databases.drop, dsn)


def _chosen_app(config: pytest.Config) -> Interlock:
    from interlock.app import Interlock  # noqa: PLC0415  see interlock_databases
    from interlock.cli.choose import load_app  # noqa: PLC0415  see interlock_databases

    name = config.getini("interlock_app")
    return load_app(name) if name else Interlock()


@contextmanager
def _server(dsn: str) -> Iterator[str]:
    if dsn:
        yield dsn
        return
    from interlock.embedded import EmbeddedServer, interlock_home, make_folders  # noqa: PLC0415  see interlock_databases

    home = interlock_home()
    make_folders(home)
    folder = Path(tempfile.mkdtemp(prefix="pytest-", dir=home))
    folder.chmod(0o755)  # PostgreSQL may run under another account, which has to get in
    try:
        with EmbeddedServer(folder / "pg", options={"fsync": "off"}) as server:
            yield server.start()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
