"""What timers and their slots say, at which level: an operator reads these lines at night."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from interlock.errors import LockServiceUnavailable
from interlock.observe.events import (
    BreakerChanged,
    SlotAcquired,
    SlotExpired,
    SlotHeldLong,
    SlotLost,
    SlotRefused,
    SlotReleased,
    TimerLockBack,
    TimerLockDown,
    TimerSaturated,
    TimerSkipped,
    TimerStarted,
)

DOWN = LockServiceUnavailable(where="redis://cache", reason="no answer in time")
LINES = [
    (TimerStarted(timer="poll", slot=2, host="web-1"), logging.INFO, "timer poll runs in slot 2 on web-1"),
    (TimerStarted(timer="poll", slot=None, host="web-1"), logging.INFO, "timer poll runs without a slot on web-1"),
    (
        TimerLockDown(timer="poll", policy="skip", error=DOWN),
        logging.ERROR,
        "timer poll cannot get a slot, the lock service fails; what it does now: skip",
    ),
    (TimerLockBack(timer="poll"), logging.INFO, "timer poll gets slots again"),
    (
        SlotHeldLong(name="timer:poll", slot=0, held_for=timedelta(seconds=450)),
        logging.WARNING,
        "slot 0 of timer:poll is held longer than expected: 450 s",
    ),
    (
        TimerSaturated(timer="poll", max_concurrency=3),
        logging.WARNING,
        "timer poll is skipped because as many of it run as may: 3",
    ),
    (TimerSkipped(timer="poll", reason="slots_held"), logging.DEBUG, "timer poll skipped: slots_held"),
    (BreakerChanged(state="open"), logging.INFO, "the breaker before the lock service is open"),
]


@pytest.mark.parametrize(("event", "level", "line"), LINES, ids=[line[2][:30] for line in LINES])
def test_a_line_has_the_level_it_deserves_and_says_what_and_where(event, level, line):
    assert event.severity() == level
    assert event.message().startswith(line)


def fields(kind) -> set[str]:
    return set(kind.__dataclass_fields__)


def test_whoever_measures_finds_every_quantity_in_an_event():
    assert {"name", "waited", "took"} <= fields(SlotAcquired)
    assert {"name", "holders", "slots", "took"} <= fields(SlotRefused)
    assert {"name", "held_for"} <= fields(SlotReleased) & fields(SlotLost)
    assert {"name", "owner"} <= fields(SlotExpired)
    assert {"state"} <= fields(BreakerChanged)


async def test_a_hold_tells_of_its_wait_its_length_and_the_answer_time_of_the_service(world):
    locks = world.locks("web-1")
    lease = await locks.atry_hold("x")
    assert await locks.atry_hold("x") is None
    await lease.arelease()
    [acquired], [refused], [released] = (world.said(kind) for kind in (SlotAcquired, SlotRefused, SlotReleased))
    assert timedelta(0) < acquired.took <= acquired.waited
    assert (refused.holders, refused.slots) == (1, 1)
    assert released.held_for > timedelta(0)
