"""Fixtures for every test: real servers, fleets of processes, a hostile network. See tests/harness."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.harness import databases, guard, run_folder
from tests.harness.hygiene import no_task_outlives_the_test, nothing_outlives_the_test
from tests.harness.postgres import end_shared_server, shared_server
from tests.harness.private_postgres import PrivatePostgres
from tests.harness.processes import Fleet
from tests.harness.proxy import TcpProxy
from tests.harness.valkey import ValkeyServer, server_binaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.harness.valkey import ServerBinary

__all__ = ["no_task_outlives_the_test", "nothing_outlives_the_test"]

FLEET = pytest.StashKey[Fleet]()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell does so to what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_folder.open_folder(config)
    # The same examples in every run, and however long they take: a run says something about the code alone.
    slow = [HealthCheck.too_slow]
    settings.register_profile("repeatable", deadline=None, derandomize=True, suppress_health_check=slow)
    settings.load_profile("repeatable")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    run_folder.hand_over(node)


def pytest_unconfigure(config: pytest.Config) -> None:
    guard.close()
    if not run_folder.is_worker(config):
        end_shared_server(run_folder.path())
        run_folder.remove()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed and (fleet := item.stash.get(FLEET, None)):
        report.sections += fleet.sections()
    return report


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The maintenance database of the run's PostgreSQL: for making databases, not for tests."""
    server = shared_server(run_folder.path())
    yield server.start()
    server.stop()


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[str]:
    """An empty database for this test."""
    yield (dsn := databases.create(postgres_dsn))
    databases.drop(postgres_dsn, dsn)


@pytest.fixture
def migrated(postgres_dsn: str) -> Iterator[str]:
    """A database with our schema for this test."""
    yield (dsn := databases.create_migrated(postgres_dsn))
    databases.drop(postgres_dsn, dsn)


@pytest.fixture(scope="module")
def module_database(postgres_dsn: str) -> Iterator[str]:
    """A database with our schema, shared by the tests of a module."""
    yield (dsn := databases.create_migrated(postgres_dsn))
    databases.drop(postgres_dsn, dsn)


@pytest.fixture
def own_postgres() -> Iterator[PrivatePostgres]:
    """A server of this test alone, started, with fsync on; it may be stopped, killed and restarted on its port."""
    server = PrivatePostgres(Path(tempfile.mkdtemp(prefix="own-", dir=run_folder.path())) / "pg")
    try:
        server.start()
        yield server
    finally:
        server.stop("immediate")


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """The Valkey of this test process."""
    server = _valkey(server_binaries()[0])
    yield server
    server.kill()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """An empty Valkey database for this test."""
    return valkey_server.empty_database()


@pytest.fixture(scope="session", params=server_binaries(), ids=lambda binary: binary.name)
def each_lock_server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """Every server on this machine that speaks the Redis protocol, in turn."""
    server = _valkey(request.param)
    yield server
    server.kill()


@pytest.fixture
def each_lock_server_url(each_lock_server: ValkeyServer) -> str:
    """An empty database on each of them, in turn."""
    return each_lock_server.empty_database()


@pytest.fixture
def own_valkey() -> Iterator[ValkeyServer]:
    """A Valkey of this test alone, which may be killed and started again."""
    server = _valkey(server_binaries()[0])
    yield server
    server.kill()


def _valkey(binary: ServerBinary) -> ValkeyServer:
    return ValkeyServer(binary, Path(tempfile.mkdtemp(prefix="valkey-", dir=run_folder.path())))


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """Processes of an app; killed at the end of the test, and their output shown if it failed."""
    fleet = Fleet(tmp_path)
    request.node.stash[FLEET] = fleet
    yield fleet
    fleet.close()


@pytest.fixture
def proxy_to() -> Iterator[Callable[[str], TcpProxy]]:
    """Starts proxies to the servers of URLs: `proxy = proxy_to(dsn)`, then `proxy.dsn(dsn)`."""
    proxies: list[TcpProxy] = []

    def start(dsn: str) -> TcpProxy:
        proxies.append(TcpProxy.to(dsn))
        return proxies[-1]

    yield start
    for proxy in proxies:
        proxy.close()
