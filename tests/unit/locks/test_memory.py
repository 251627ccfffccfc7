"""Locks in the memory of a process that runs for months."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from interlock.locks.memory import MemoryLocks
from interlock.model.lease import SlotRequest

TTL, DAY = timedelta(seconds=30), timedelta(days=1)
NOTHING = timedelta(0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(name: str) -> SlotRequest:
    return SlotRequest(name=name, slots=1, ttl=TTL, token=uuid4(), owner="one", server=None, start=0)


async def use(locks, name: str, at_least: timedelta = NOTHING) -> None:
    asked = request(name)
    await locks.acquire(asked)
    assert await locks.release(name, asked.token, at_least)


async def test_names_that_nobody_holds_any_more_are_forgotten_and_no_others():
    locks = MemoryLocks(clock := Clock())
    await locks.acquire(request("held"))
    await use(locks, "stays taken", at_least=TTL)
    for number in range(5000):
        await use(locks, f"order {number}")
    assert len(locks._names) < 2000
    assert {holder.name for holder in await locks.holders()} == {"held", "stays taken"}
    clock.now += 2 * TTL.total_seconds()
    for number in range(5000):
        await use(locks, f"order {number}")
    assert "stays taken" not in locks._names


async def test_a_holder_that_vanished_is_named_for_a_day():
    locks = MemoryLocks(clock := Clock())
    await locks.acquire(request("vanished"))
    clock.now += DAY.total_seconds()
    for number in range(3000):
        await use(locks, f"order {number}")
    assert "vanished" in locks._names
    assert (await locks.acquire(request("vanished"))).expired == "one"
    clock.now += DAY.total_seconds() + TTL.total_seconds()
    for number in range(3000):
        await use(locks, f"order {number}")
    assert "vanished" not in locks._names
