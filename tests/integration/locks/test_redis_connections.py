"""A connection to Redis that was cut while it idled, or whose server became a replica, costs nobody a slot."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import retry as redis_retry

from interlock.errors import LockServiceUnavailable
from interlock.model.lease import Grant, Held
from tests.harness import run_folder
from tests.harness.proxy import TcpProxy
from tests.harness.valkey import ValkeyServer, ask, server_binaries
from tests.integration.locks.conftest import request

NOTHING = timedelta(0)


@pytest.fixture
def locks(own_valkey, open_redis):
    return open_redis(f"redis://127.0.0.1:{own_valkey.port}/0")


@pytest.fixture
def once(monkeypatch) -> None:
    """The guard switched off: what fails is not tried again."""
    retry = redis_retry.Retry
    monkeypatch.setattr(redis_retry, "Retry", lambda backoff, _, **options: retry(backoff, 0, **options))


def cut_what_idles(server: ValkeyServer) -> None:
    """As a server does by its `timeout`, and a load balancer by its own."""
    ask(server.port, "CLIENT KILL TYPE normal")


async def test_whoever_comes_after_the_connection_was_cut_is_served(locks, own_valkey):
    asked = request(slots=2)
    grant = await locks.acquire(asked)
    held, line = Held("x", grant.slot, asked.token, asked.ttl), await locks.line()
    assert await line.extend([held])
    cut_what_idles(own_valkey)
    assert set(await line.extend([held])) == {asked.token}
    await line.close()
    assert isinstance(await locks.acquire(request(slots=2)), Grant)
    cut_what_idles(own_valkey)
    assert await locks.release("x", asked.token, NOTHING)
    assert len(await locks.holders()) == 1


async def test_control_without_another_try_whoever_comes_after_the_connection_was_cut_is_refused(
    once, locks, own_valkey
):
    assert isinstance(await locks.acquire(request()), Grant)
    cut_what_idles(own_valkey)
    with pytest.raises(LockServiceUnavailable):
        await locks.acquire(request("y"))


async def test_a_server_that_became_a_replica_is_left_for_the_one_that_its_address_leads_to_now(own_valkey, open_redis):
    primary = ValkeyServer(server_binaries()[0], Path(tempfile.mkdtemp(prefix="valkey-", dir=run_folder.path())))
    proxy = TcpProxy("127.0.0.1", own_valkey.port)
    try:
        locks = open_redis(f"redis://127.0.0.1:{proxy.port}/0")
        assert isinstance(await locks.acquire(request()), Grant)
        ask(own_valkey.port, f"REPLICAOF 127.0.0.1 {primary.port}")
        proxy._target = ("127.0.0.1", primary.port)
        assert isinstance(await locks.acquire(request("y")), Grant)
        await locks.close()
    finally:
        proxy.close()
        primary.kill()
