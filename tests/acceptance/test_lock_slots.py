"""Many processes compete for a few slots: never more holders than slots, whoever keeps them."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from interlock import Interlock, LeaseLost, LockServiceUnavailable
from tests.harness.child import tell
from tests.harness.waiting import eventually

SLOTS = 3
TTL = timedelta(seconds=2)


async def compete(options: dict[str, str], namespace: str, seconds: float, go: str) -> None:
    """The child: takes and gives back as fast as it can, and tells when it held what, by the machine's one clock.

    A busy machine may let a process stand still for longer than its lease, which then says so: it counts for as long
    as it could be believed, and how long it lasted is told as a share of its time to live.
    """
    app = Interlock(**options, lock_namespace=namespace)
    await app.locks.ahealth()
    tell("ready")
    await eventually(Path(go).exists, 120, "the word to begin")
    holds, lasted = [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        lease = await take(app)
        if lease is None:
            continue
        began = time.monotonic_ns()
        believed = began + int(lease.remaining() / timedelta(microseconds=1)) * 1000
        await asyncio.sleep(0.001)
        ended = time.monotonic_ns()
        if lease.lost:
            lasted.append(lease.held_for / TTL)
            ended = min(ended, believed)
        if began < ended:
            holds.append((lease.slot, lease.fence, began, ended))
        await lease.arelease()
    await app.aclose()
    tell("holds", holds=holds, lasted=lasted)


async def take(app: Interlock):
    """None also when the service does not answer in time: this machine may be very busy."""
    try:
        return await app.locks.atry_hold("shared", SLOTS, ttl=TTL, wait=0.05)
    except LockServiceUnavailable:
        return None


def most_at_once(holds) -> int:
    """Held from `began` to `ended` at the least: the slot was granted before and given back after."""
    moments = sorted([(began, 1) for _, _, began, _ in holds] + [(ended, -1) for _, _, _, ended in holds])
    count = most = 0
    for _, change in moments:
        count += change
        most = max(most, count)
    return most


def taken_away(lasted: list[float]) -> list[float]:
    """Those of the lost leases that did not run out: even one whose grant came back late lasts for half of its time."""
    return [share for share in lasted if share < 1 / 3]


def judge(holds) -> list[str]:
    """What is wrong; nothing, if all is well."""
    faults = [] if most_at_once(holds) <= SLOTS else [f"{most_at_once(holds)} held at once"]
    for slot in range(SLOTS):
        of_slot = sorted((hold for hold in holds if hold[0] == slot), key=lambda hold: hold[2])
        for before, after in pairwise(of_slot):
            faults += [f"overlap on slot {slot}"] if after[2] < before[3] else []
            faults += [f"fence of slot {slot} fell"] if after[1] <= before[1] else []
    return faults


@pytest.fixture(params=["postgres", "redis"])
def options(request, migrated, valkey_url) -> dict[str, str]:
    if request.param == "postgres":
        return {"dsn": migrated}
    return {"dsn": migrated, "lock_backend": "redis", "redis_url": valkey_url}


@pytest.fixture
def race(fleet, options, tmp_path):
    """So many processes that begin together; answers who held what and when."""

    async def run(processes: int, seconds: float, namespace: str = "race"):
        names, go = [namespace.format(number) for number in range(processes)], tmp_path / "go"
        children = [fleet.start(f"{__name__}:compete", options, name, seconds, str(go)) for name in names]
        for child in children:
            await child.expect("ready", 90)
        go.touch()
        answers = [await child.expect("holds", seconds + 60) for child in children]
        assert taken_away([share for answer in answers for share in answer["lasted"]]) == []
        return [tuple(hold) for answer in answers for hold in answer["holds"]]

    return run


async def test_a_few_processes_never_hold_more_than_the_slots(race):
    holds = await race(processes=5, seconds=2)
    assert judge(holds) == []
    assert len(holds) > 50
    assert {hold[0] for hold in holds} == set(range(SLOTS))


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_sixteen_processes_never_hold_more_than_three_slots_for_half_a_minute(race):
    holds = await race(processes=16, seconds=30)
    assert judge(holds) == []
    assert len(holds) > 1000


async def test_control_processes_that_do_not_see_each_other_are_found_out(race):
    holds = await race(processes=3, seconds=2, namespace="apart-{}")
    assert judge(holds) != []


async def test_control_a_lease_that_did_not_run_out_is_found_out(options):
    app, ttl = Interlock(**options, lock_namespace="taken"), timedelta(seconds=60)
    lease = await app.locks.atry_hold("shared", SLOTS, ttl=ttl)
    await app.locks.aforce_release("shared", lease.slot, actor="an operator")
    with pytest.raises(LeaseLost):
        await lease.aextend()
    assert lease.lost
    assert taken_away([lease.held_for / ttl]) != []
    await lease.arelease()
    await app.aclose()
