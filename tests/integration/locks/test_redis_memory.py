"""A server of Redis that has no memory left, with the policy `noeviction`, takes no lease from those who hold one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from interlock.errors import LockServiceUnavailable
from interlock.model.lease import Held
from tests.integration.locks.conftest import request

TTL, LONGER = timedelta(seconds=30), timedelta(minutes=5)


@pytest.fixture
def redis_locks(each_lock_server_url, open_redis):
    return open_redis(each_lock_server_url)


@asynccontextmanager
async def no_memory_left(redis_locks):
    client = redis_locks._clients.get()
    await client.config_set("maxmemory", "100kb")
    try:
        yield client
    finally:
        await client.config_set("maxmemory", "0")


async def test_leases_are_extended_and_given_back_and_no_new_ones_are_granted(redis_locks):
    asked = [request("extended"), request("released"), request("stays taken")]
    grants = [await redis_locks.acquire(each) for each in asked]
    async with no_memory_left(redis_locks):
        held = Held("extended", grants[0].slot, asked[0].token, LONGER)
        assert await redis_locks.extend([held]) == {asked[0].token: LONGER}
        assert await redis_locks.release("released", asked[1].token, timedelta(0))
        assert await redis_locks.release("stays taken", asked[2].token, timedelta(seconds=20))
        with pytest.raises(LockServiceUnavailable, match="maxmemory"):
            await redis_locks.acquire(request("new"))
    left = {holder.name: (holder.ttl, holder.expires_in > TTL) for holder in await redis_locks.holders()}
    assert left == {"extended": (LONGER, True), "stays taken": (TTL, False)}


async def test_control_a_script_whose_first_write_needs_memory_is_refused(redis_locks):
    async with no_memory_left(redis_locks) as client:
        with pytest.raises(Exception, match="maxmemory"):
            await client.eval("return redis.call('HSET', KEYS[1], 'ttl', 1)", 1, "x")
