"""The list of a name's slots in Redis outlives every holder, and no slot is held twice without it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.model.lease import Grant, Held, Refusal
from tests.integration.locks.conftest import request

LIST = "interlock:test:{x}:open"
NOTHING = timedelta(0)
WEEKS = 3 * 7 * 24 * 3600
HOUR = 3600


@pytest.fixture
def redis_locks(each_lock_server_url, open_redis):
    return open_redis(each_lock_server_url)


@pytest.fixture
async def held(redis_locks):
    asked = request(slots=2)
    grant = await redis_locks.acquire(asked)
    return Held("x", grant.slot, asked.token, timedelta(seconds=30))


async def test_a_slot_that_is_held_for_longer_than_the_list_would_live_stays_in_the_list(redis_locks, held):
    client = redis_locks._clients.get()
    await client.expire(LIST, 5)  # as weeks after the last time that somebody took a slot
    await redis_locks.extend([held])
    assert await client.ttl(LIST) > WEEKS


async def test_a_slot_is_not_taken_though_the_server_dropped_the_list(redis_locks, held):
    await redis_locks._clients.get().delete(LIST)
    answers = [await redis_locks.acquire(request(slots=2, start=held.slot)) for _ in range(2)]
    assert [type(answer) for answer in answers] == [Grant, Refusal]
    assert answers[0].slot != held.slot


async def test_a_list_that_the_server_dropped_is_whole_again_with_the_next_renewal(redis_locks, held):
    await redis_locks._clients.get().delete(LIST)
    await redis_locks.extend([held])
    assert (await redis_locks.acquire(request(slots=2))).peers.holders == 1
    assert await redis_locks.release("x", held.token, NOTHING)
    assert len(await redis_locks.holders()) == 1


async def test_a_name_that_nobody_holds_any_more_is_forgotten_within_the_hour(redis_locks, held):
    client, other = redis_locks._clients.get(), request(slots=2)
    await redis_locks.acquire(other)
    await redis_locks.release("x", held.token, NOTHING)
    assert await client.ttl(LIST) > WEEKS
    await redis_locks.release("x", other.token, NOTHING)
    assert 0 < await client.ttl(LIST) <= HOUR


async def test_a_name_whose_slot_stays_taken_after_its_release_is_forgotten_an_hour_after_that(redis_locks, held):
    await redis_locks.release("x", held.token, timedelta(hours=2))
    assert 2 * HOUR < await redis_locks._clients.get().ttl(LIST) <= 3 * HOUR


async def test_a_name_that_is_taken_again_is_remembered_for_as_long_as_ever(redis_locks, held):
    await redis_locks.release("x", held.token, NOTHING)
    assert isinstance(await redis_locks.acquire(request(slots=2)), Grant)
    assert await redis_locks._clients.get().ttl(LIST) > WEEKS
