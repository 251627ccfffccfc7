"""In which order a timer asks whether it may run, and what becomes of its run."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from interlock import Interlock
from interlock.errors import InvalidOption, InvalidSchedule, LockServiceUnavailable
from interlock.model.exclusion import exclude
from interlock.model.schedule import cron, every
from interlock.observe.events.timer import (
    TimerEnded,
    TimerLockBack,
    TimerLockDown,
    TimerOverran,
    TimerRetried,
    TimerSaturated,
    TimerSkipped,
    TimerStarted,
)
from interlock.timers.breaker import THRESHOLD
from interlock.timers.counts import Skip
from interlock.timers.runner import LOOK_AGAIN
from interlock.timers.timer import Timer, declared_timer
from tests.harness.waiting import eventually


async def nothing() -> None:
    return None


async def ended(world, count: int = 1) -> list[str]:
    await eventually(lambda: len(world.said(TimerEnded)) >= count, 60, "the end of the run")
    return [event.outcome for event in world.said(TimerEnded)]


async def test_it_runs_in_a_slot_and_gives_it_back(world, gate):
    runner = await world.runner(gate.__call__)
    assert await world.fire(runner) is None
    [holder] = await world.service.holders()
    assert (holder.name, holder.slots) == ("timer:t", 1)
    gate.open()
    assert await ended(world) == ["succeeded"]
    assert await world.service.holders() == []
    [started] = world.said(TimerStarted)
    assert started.message() == "timer t runs in slot 0 on one"


async def test_an_excluded_time_asks_nobody(world):
    runner = await world.runner(nothing, exclude=(exclude.dates("2030-01-01"),))
    assert await world.fire(runner) is Skip.EXCLUDED_WINDOW
    assert world.service.asked == 0


async def test_a_fire_that_comes_late_does_not_run_in_a_time_that_is_excluded(world):
    runner = await world.runner(nothing, exclude=(exclude.dates("2030-01-01"),))
    assert await runner.fire(world.now - timedelta(hours=1)) is Skip.EXCLUDED_WINDOW


async def test_an_excluded_fire_of_cron_is_not_made_up_for_when_the_window_is_over(world):
    eve = world.now - timedelta(seconds=1)
    runner = await world.runner(nothing, schedule=cron("59 23 * * *"), exclude=(exclude.dates("2029-12-31"),))
    assert await runner.fire(eve) is Skip.EXCLUDED_WINDOW
    assert await runner.fire(world.now) is None
    await ended(world)


async def test_the_cap_of_this_server_is_seen_before_the_lock_service_is_asked(world, gate):
    runner = await world.runner(gate.__call__)
    await world.fire(runner)
    assert await world.fire(runner) is Skip.LOCAL_CAP
    assert world.service.asked == 1


async def test_slots_are_counted_over_servers(world, gate):
    runners = [await world.runner(gate.__call__, server=name, max_concurrency=2) for name in ("a", "b", "c")]
    assert [await world.fire(runner) for runner in runners] == [None, None, Skip.SLOTS_HELD]
    await eventually(lambda: gate.entered == 2, 60, "two bodies")
    assert world.ticks == []


async def test_control_timers_that_are_not_distributed_count_for_themselves(world, gate):
    runners = [await world.runner(gate.__call__, server=name, distributed=False) for name in ("a", "b", "c")]
    assert [await world.fire(runner) for runner in runners] == [None, None, None]


async def test_a_timer_may_be_distributed_though_the_app_is_not_and_the_other_way_round(world, gate):
    there = await world.runner(gate.__call__, server="a", distributed=False)
    here = await world.runner(gate.__call__, server="b", distributed=True)
    one = await world.runner(gate.__call__, server="c", distributed=False)
    for runner, choice in ((there, True), (here, False), (one, True)):
        object.__setattr__(runner.timer, "distributed", choice)
        runner._distributed = choice
    assert [await world.fire(runner) for runner in (there, here, one)] == [None, None, Skip.SLOTS_HELD]


async def test_a_tick_that_is_taken_gives_the_slot_back_and_runs_nothing(world):
    world.tick_left = False
    runner = await world.runner(nothing, runs_per_tick=1)
    assert await world.fire(runner) is Skip.TICK_TAKEN
    assert await world.service.holders() == []
    assert world.said(TimerStarted) == []


async def test_saturation_is_told_once_until_a_run_gets_a_slot(world, gate):
    first, second = [await world.runner(gate.__call__, server=name, schedule=every(minutes=1)) for name in "ab"]
    await world.fire(first)
    for _ in range(3):
        await world.fire(second)
    assert len(world.said(TimerSaturated)) == 1
    assert len(world.said(TimerSkipped)) == 3
    gate.open()
    await ended(world)
    assert await world.fire(second) is None
    await ended(world, 2)
    held = await first._around.locks.atry_hold("timer:t")
    assert await world.fire(second) is Skip.SLOTS_HELD
    assert len(world.said(TimerSaturated)) == 2
    await held.arelease()


async def test_a_timer_that_fires_often_remembers_a_refusal_for_a_second_and_takes_nothing(world):
    often = await world.runner(nothing, schedule=every(seconds=2))
    lease = await often._around.locks.atry_hold("timer:t")
    assert await world.fire(often) is Skip.SLOTS_HELD
    asked = world.service.asked
    assert await world.fire(often) is Skip.SLOTS_HELD
    assert world.service.asked == asked
    await lease.arelease()
    assert await world.service.holders() == []
    often._refused_at -= 1  # a second later
    assert await world.fire(often) is None
    await ended(world)


async def test_a_timer_that_fires_seldom_asks_every_time(world):
    seldom = await world.runner(nothing, schedule=every(seconds=10))
    lease = await seldom._around.locks.atry_hold("timer:t")
    for _ in range(2):
        assert await world.fire(seldom) is Skip.SLOTS_HELD
    assert world.service.asked == 3
    await lease.arelease()


async def test_without_the_lock_service_it_is_skipped_told_once_and_recovers_by_itself(world, monkeypatch):
    now = [0.0]
    runner = await world.runner(nothing)
    runner._around.breaker._clock = lambda: now[0]
    world.service.down = True
    for _ in range(THRESHOLD + 3):
        assert await world.fire(runner) is Skip.LOCK_SERVICE_DOWN
    assert world.service.asked == THRESHOLD
    assert len(world.said(TimerLockDown)) == 1
    world.service.down = False
    now[0] += 1.5
    assert await world.fire(runner) is None
    assert len(world.said(TimerLockBack)) == 1
    await ended(world)


async def test_slots_that_answer_do_not_end_the_trouble_of_ticks_that_do_not(world):
    async def no_tick(*_) -> bool:
        raise LockServiceUnavailable(where="the database", reason="it is down")

    world.take_tick, take = no_tick, world.take_tick
    runner = await world.runner(nothing, runs_per_tick=1)
    for _ in range(3):
        assert await world.fire(runner) is Skip.LOCK_SERVICE_DOWN
    assert (len(world.said(TimerLockDown)), len(world.said(TimerLockBack))) == (1, 0)
    assert runner.lock_down
    assert await world.service.holders() == []
    object.__setattr__(runner._around, "take_tick", take)
    assert await world.fire(runner) is None
    assert len(world.said(TimerLockBack)) == 1
    assert not runner.lock_down
    await ended(world)


async def test_a_remembered_refusal_does_not_use_up_the_one_try_of_a_half_open_breaker(world):
    now = [0.0]
    runner = await world.runner(nothing, schedule=every(seconds=2))
    breaker = runner._around.breaker
    breaker._clock = lambda: now[0]
    for _ in range(THRESHOLD):
        breaker.failed()
    now[0] += 1.5
    runner._refused_at = float("inf")
    assert await world.fire(runner) is Skip.SLOTS_HELD
    runner._refused_at = float("-inf")
    assert await world.fire(runner) is None
    await ended(world)


async def test_without_the_lock_service_it_may_run_locally_up_to_its_cap(world, gate):
    world.service.down = True
    runner = await world.runner(gate.__call__, max_concurrency=5, when_lock_down="local", local_cap=2)
    assert [await world.fire(runner) for _ in range(3)] == [None, None, Skip.LOCAL_CAP]
    assert [event.slot for event in world.said(TimerStarted)] == [None, None]
    [down] = world.said(TimerLockDown)
    assert "what it does now: local" in down.message()


async def test_without_the_lock_service_it_may_raise(world):
    world.service.down = True
    runner = await world.runner(nothing, when_lock_down="raise")
    with pytest.raises(LockServiceUnavailable):
        await world.fire(runner)


async def test_a_run_that_takes_too_long_is_cancelled(world, gate):
    runner = await world.runner(gate.__call__, max_run_time=timedelta(milliseconds=20))
    await world.fire(runner)
    assert await ended(world) == ["overran"]
    assert world.said(TimerOverran)[0].cancelled
    assert await world.service.holders() == []


async def test_a_run_that_takes_too_long_may_be_left_alone(world, gate):
    runner = await world.runner(gate.__call__, max_run_time=timedelta(milliseconds=20), overrun="warn")
    await world.fire(runner)
    await eventually(lambda: world.said(TimerOverran), 60, "the warning")
    assert len(await world.service.holders()) == 1
    gate.open()
    assert await ended(world) == ["succeeded"]


async def test_a_timeout_of_the_body_itself_is_its_failure_and_no_overrun(world):
    async def body():
        raise TimeoutError

    runner = await world.runner(body)
    await world.fire(runner)
    assert await ended(world) == ["failed"]


async def test_a_thread_that_takes_too_long_keeps_its_slot_until_it_returns(world):
    go = threading.Event()
    runner = await world.runner(go.wait, max_run_time=timedelta(milliseconds=20))
    await world.fire(runner)
    await eventually(lambda: world.said(TimerOverran), 60, "the warning")
    assert len(await world.service.holders()) == 1
    go.set()
    assert await ended(world) == ["succeeded"]
    assert await world.service.holders() == []


async def test_a_thread_that_outlives_a_shutdown_does_not_give_its_slot_to_others(world):
    go, entered = threading.Event(), threading.Event()

    def body():
        entered.set()
        go.wait()

    runner = await world.runner(body)
    await world.fire(runner)
    await asyncio.to_thread(entered.wait)
    await runner.cancel()
    assert len(await world.service.holders()) == 1
    go.set()


async def test_a_body_that_fails_is_counted_and_gives_its_slot_back(world):
    async def body():
        raise KeyError("x")

    runner = await world.runner(body)
    await world.fire(runner)
    assert await ended(world) == ["failed"]
    assert await world.service.holders() == []
    totals = runner.counts.taken()
    assert (totals.runs, totals.failures) == (1, 1)
    assert not runner.counts.any()


async def test_a_retry_keeps_its_slot_and_its_tick(world, monkeypatch):
    monkeypatch.setattr("interlock.timers.run.FIRST_RETRY", 0.001)
    tries = []

    async def body():
        tries.append(await world.service.holders())
        if len(tries) < 3:
            raise KeyError("x")

    runner = await world.runner(body, retry_on_error=True, runs_per_tick=1)
    await world.fire(runner)
    assert await ended(world) == ["succeeded"]
    assert len({held[0].fence for held in tries}) == 1
    assert len(world.ticks) == 1
    assert len(world.said(TimerRetried)) == 2


async def test_retries_end_when_the_run_has_used_up_its_time(world, monkeypatch):
    monkeypatch.setattr("interlock.timers.run.FIRST_RETRY", 0.001)

    async def body():
        raise KeyError("x")

    runner = await world.runner(body, retry_on_error=True, max_run_time=timedelta(seconds=1))
    await world.fire(runner)
    assert await ended(world) == ["overran"]
    assert len(world.said(TimerRetried)) > 1


async def test_a_run_whose_slot_is_lost_is_cancelled_and_told(world, gate, monkeypatch):
    runner = await world.runner(gate.__call__)
    runner._around.locks.ttl = timedelta(milliseconds=200)
    await world.fire(runner)
    await world.service.force_release("timer:t", 0)
    assert await ended(world) == ["lost"]


async def test_a_shutdown_cancels_what_runs_and_gives_its_slot_back(world, gate):
    runner = await world.runner(gate.__call__)
    await world.fire(runner)
    await eventually(lambda: gate.entered, 60, "the body")
    await runner.cancel()
    assert await ended(world) == ["cancelled"]
    assert await world.service.holders() == []
    assert runner.counts.taken().failures == 0


async def test_skips_are_counted_by_reason(world, gate):
    runner = await world.runner(gate.__call__)
    for _ in range(3):
        await world.fire(runner)
    assert runner.counts.taken().skips == {"local_cap": 2}


async def test_an_interval_without_spread_fires_at_once_and_then_at_its_distance(world):
    runner = await world.runner(nothing, spread_start=False, schedule=every(seconds=3))
    assert await runner.tick() == timedelta(seconds=3)
    assert len(world.said(TimerStarted)) == 1
    await ended(world)


async def test_cron_waits_for_its_next_time(world):
    runner = await world.runner(nothing, schedule=cron("0 3 * * *"))
    assert await runner.tick() == LOOK_AGAIN
    assert world.said(TimerStarted) == []
    await look_again(world, runner, timedelta(hours=3) - timedelta(seconds=2))
    assert await runner.tick() == timedelta(seconds=2)
    assert world.said(TimerStarted) == []


async def look_again(world, runner, moved: timedelta) -> None:
    """The database's clock has moved; this host's has not."""
    world.now += moved
    await runner._around.time.refresh()


async def test_a_time_that_passes_while_this_machine_is_suspended_is_noticed_within_seconds(world):
    runner = await world.runner(nothing, schedule=cron("0 3 * * *"))
    assert await runner.tick() <= timedelta(seconds=5)
    await look_again(world, runner, timedelta(hours=3))
    await runner.tick()
    await ended(world)
    assert len(world.said(TimerStarted)) == 1


async def test_what_was_missed_is_not_made_up_for(world):
    runner = await world.runner(nothing, spread_start=False, schedule=every(seconds=10))
    await runner.tick()
    await ended(world)
    await look_again(world, runner, timedelta(seconds=96))
    assert await runner.tick() == timedelta(seconds=4)
    await ended(world, 2)
    assert len(world.said(TimerStarted)) == 2


def test_exclusions_that_leave_a_timer_no_time_are_refused():
    weekend = (exclude.weekdays("sat", "sun"),)
    with pytest.raises(InvalidSchedule, match="would never run"):
        Timer(name="t", body=nothing, schedule=cron("0 3 * * sun"), exclude=weekend)


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedule": "10s"}, {"max_concurrency": 0}, {"runs_per_tick": 0}, {"max_run_time": timedelta(0)},
        {"max_run_time": 5}, {"when_lock_down": "hope"}, {"when_lock_down": "local"}, {"local_cap": 1},
        {"when_lock_down": "local", "local_cap": 2},
        {"distributed": "yes"}, {"retry_on_error": 1}, {"spread_start": None}, {"max_concurrency": 10_001},
        {"overrun": "kill"}, {"body": lambda x: x}, {"name": "x" * 200}, {"body": 5}, {"exclude": ["22:00"]},
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidOption):
        Timer(**{"name": "t", "body": nothing, "schedule": every(seconds=1), **wrong})


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": 5}, {"exclude": "22:00"}, {"exclude": None}, {"body": 5}])
def test_a_wrong_declaration_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidOption):
        declared_timer(
            **{"body": nothing, "schedule": every(seconds=1), "name": None, "exclude": (), "tz": None, **wrong}
        )


def test_a_decorator_without_a_schedule_does_not_swallow_the_function():
    with pytest.raises(InvalidOption):
        Interlock().timer(nothing)


@pytest.mark.parametrize("wrong", ["max_concurency", "body", "lock_name"])
def test_a_misspelt_option_is_refused_where_it_is_written(wrong):
    with pytest.raises(InvalidOption, match=wrong):
        Interlock().timer(every(seconds=1), **{wrong: 1})(nothing)
    with pytest.raises(InvalidOption, match=wrong):
        Interlock().add_timer("t", nothing, every(seconds=1), **{wrong: 1})


def test_a_timer_is_named_by_its_module_and_function():
    timer = declared_timer(nothing, every(seconds=1), name=None, exclude=(), tz=None)
    assert timer.name == f"{__name__}.nothing"
    assert timer.lock_name == f"timer:{__name__}.nothing"


@pytest.mark.parametrize(("own", "expected"), [(None, "Asia/Tokyo"), ("UTC", "UTC")])
def test_a_cron_that_names_no_zone_is_read_in_that_of_its_timer(own, expected):
    timer = declared_timer(nothing, cron("0 9 * * *", tz=own), name=None, tz="Asia/Tokyo")
    assert (timer.schedule.tz, timer.tz) == (expected, "Asia/Tokyo")


async def test_a_lambda_around_an_async_function_is_awaited(world, gate):
    runner = await world.runner(lambda: gate())  # noqa: PLW0108  hands back a coroutine
    await world.fire(runner)
    await eventually(lambda: gate.entered, 60, "the body")
    assert len(await world.service.holders()) == 1
    gate.open()
    assert await ended(world) == ["succeeded"]


async def test_what_a_lambda_hands_back_is_cancelled_when_it_takes_too_long(world, gate):
    late = timedelta(milliseconds=200)
    runner = await world.runner(lambda: gate(), max_run_time=late)  # noqa: PLW0108  hands back a coroutine
    await world.fire(runner)
    assert await ended(world) == ["overran"]
    assert world.said(TimerOverran)[0].cancelled


def leave() -> None:
    raise SystemExit(3)


def stop_iteration() -> None:
    next(iter(()))


async def leave_in_async() -> None:
    raise SystemExit(3)


async def cancelled_by_itself() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("body", [leave, stop_iteration, leave_in_async, cancelled_by_itself])
async def test_whatever_a_body_raises_is_its_failure_and_ends_nothing_else(world, body):
    runner = await world.runner(body)
    await world.fire(runner)
    assert await ended(world) == ["failed"]
    assert runner.counts.taken().failures == 1
    assert await world.service.holders() == []
    assert await world.fire(runner) is None
    await ended(world, 2)


async def test_many_plain_functions_run_at_once(world):
    many = 50  # more than the standard executor has threads
    together = threading.Barrier(many)
    runner = await world.runner(lambda: together.wait(60) and None, max_concurrency=many)
    for _ in range(many):
        assert await world.fire(runner) is None
    assert await ended(world, many) == ["succeeded"] * many


async def test_a_thread_whose_slot_was_lost_still_counts_on_its_server(world):
    go, entered = threading.Event(), threading.Event()

    def body():
        entered.set()
        go.wait()

    runner = await world.runner(body)
    runner._around.locks.ttl = timedelta(milliseconds=200)
    await world.fire(runner)
    await asyncio.to_thread(entered.wait)
    await world.service.force_release("timer:t", 0)
    assert await ended(world) == ["lost"]
    assert await world.fire(runner) is Skip.LOCAL_CAP
    go.set()
    await eventually(lambda: not runner.running, 60, "the end of the thread")
    assert await world.fire(runner) is None
    await ended(world, 2)


@pytest.mark.parametrize(("expression", "asked"), [("*/5 * * * * *", 2), ("*/20 * * * * *", 3)])
async def test_a_cron_of_seconds_remembers_a_refusal_like_an_interval(world, expression, asked):
    runner = await world.runner(nothing, schedule=cron(expression))
    lease = await runner._around.locks.atry_hold("timer:t")
    for _ in range(2):
        assert await world.fire(runner) is Skip.SLOTS_HELD
    assert world.service.asked == asked
    await lease.arelease()
