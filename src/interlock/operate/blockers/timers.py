"""Blockers of timers: the slots of the fleet, the tick, the cap of a server, the lock service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from interlock.errors import InterlockError
from interlock.model.schedule import Every
from interlock.model.schedule_json import decode_schedule
from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.plans import previous_fire
from interlock.operate.blockers.words import at, span

if TYPE_CHECKING:
    from interlock.model.schedule import Schedule
    from interlock.operate.blockers.facts import Facts, TimerFacts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_MOMENT = timedelta(microseconds=1)
_LATE = timedelta(minutes=1)
_SAID_EVERY = timedelta(hours=1)


def slots_held(facts: Facts) -> Blocker | None:
    timer = facts.timer
    if timer is None or not timer.holders or len(timer.holders) < timer.row.max_concurrency:
        return None
    held = "; ".join(f"slot {each.slot} by {each.owner} for {span(each.age)}" for each in timer.holders)
    lock = f"timer:{timer.row.name}"
    return Blocker(
        code=Code.SLOTS_HELD,
        evidence=f"all {timer.row.max_concurrency} slots are held: {held}",
        advice="wait for a run to end, raise max_concurrency, or take the slot of one that hangs",
        command=command("locks", "release", lock, timer.holders[0].slot),
        details={"holders": [each.owner for each in timer.holders], "slots": timer.row.max_concurrency},
    )


def tick_taken(facts: Facts) -> Blocker | None:
    timer = facts.timer
    if timer is None or timer.row.runs_per_tick is None or timer.row.tick_runs < timer.row.runs_per_tick:
        return None
    tick = _current_tick(_schedule(timer), facts.now)
    if tick is None or timer.row.tick_at is None or timer.row.tick_at < tick:
        return None
    return Blocker(
        code=Code.TICK_TAKEN,
        evidence=f"{timer.row.tick_runs} of {timer.row.runs_per_tick} runs of the tick {at(timer.row.tick_at)} were"
        f" started, the last on {timer.row.last_host or 'another server'}",
        advice="wait for the next tick, or raise runs_per_tick",
        command=command("timers", "list", timer.row.name),
        details={"tick": timer.row.tick_at, "runs": timer.row.tick_runs},
    )


def local_cap(facts: Facts) -> Blocker | None:
    """Only the server itself knows what it runs; its skips tell of it while the timer does not come to run."""
    timer = facts.timer
    skips = 0 if timer is None else timer.row.skips.get("local_cap", 0)
    if timer is None or not skips or not _is_overdue(timer, facts.now):
        return None
    return Blocker(
        code=Code.LOCAL_CAP,
        evidence=f"it was skipped {skips} times because a server ran as many of it as it may; {_last_run(timer)}",
        advice="see why a run takes longer than the interval, or raise max_concurrency or local_cap",
        command=command("timers", "list", timer.row.name),
        details={"skips": skips},
    )


def lock_service_down(facts: Facts) -> Blocker | None:
    timer = facts.timer
    if timer is None or not timer.row.distributed:
        return None
    skips = timer.row.skips.get("lock_service_down", 0)
    if timer.lock_error is not None:
        evidence = timer.lock_error
    elif skips and _is_overdue(timer, facts.now):
        evidence = f"it was skipped {skips} times because the lock service did not answer a server; {_last_run(timer)}"
    else:
        return None
    return Blocker(
        code=Code.LOCK_SERVICE_DOWN,
        evidence=evidence,
        advice="bring the lock service back, or declare when_lock_down='local' with a cap",
        command=command("health"),
        details={"skips": skips},
    )


def is_forgotten(timer: TimerFacts, now: datetime) -> bool:
    """Whether it was to fire, and no server said within a minute that it ran or skipped it."""
    unseen, schedule = timer.row.unseen_for, _schedule(timer)
    if isinstance(schedule, Every):
        return unseen > min(2 * schedule.interval, _SAID_EVERY) + _LATE
    planned = previous_fire(schedule, now - _LATE)
    return unseen > _SAID_EVERY + _LATE or (planned is not None and unseen > now - planned)


def _schedule(timer: TimerFacts) -> Schedule | None:
    try:
        return decode_schedule(dict(timer.row.schedule))
    except InterlockError:
        return None


def _current_tick(schedule: Schedule | None, now: datetime) -> datetime | None:
    """As the statement that takes a tick computes it."""
    if isinstance(schedule, Every):
        return now - (now - _EPOCH) % schedule.interval
    return previous_fire(schedule, now + _A_MOMENT)


def _is_overdue(timer: TimerFacts, now: datetime) -> bool:
    """Whether the last planned time passed without a run."""
    last, schedule = timer.row.last_run_at, _schedule(timer)
    if last is None or schedule is None:
        return True
    if isinstance(schedule, Every):
        return now - last > 2 * schedule.interval
    planned = previous_fire(schedule, now)
    return planned is not None and last < planned


def _last_run(timer: TimerFacts) -> str:
    return "it never ran" if timer.row.last_run_at is None else f"its last run was at {at(timer.row.last_run_at)}"
