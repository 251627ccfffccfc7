"""Junction 6: what becomes of each manifest that is due. It reads what was loaded and writes nothing.

Two passes with the same guards: those that a schedule makes due, then those that a success of their parent makes due.
How much the fleet can run is not looked at: that is the dispatcher's question.

Meanwhile the transaction stands still, and PostgreSQL ends one that does so for seconds: thousands of schedules that
are hard to work out would be decided in vain, over and over. So each pass ends in time, and the next cycle goes on.
"""

from __future__ import annotations

import json
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.errors import InterlockError
from interlock.model.due import Blocked, LaidDown, PlannedFire, Refused, Replanned
from interlock.model.exclusion import next_allowed
from interlock.model.plan import Fire, Plan, decide
from interlock.model.schedule import fire_key
from interlock.model.schedule_json import decode_exclusions, decode_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import timedelta

    from interlock.model.due import DueManifest, Verdict
    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Schedule

TIME_BASED = frozenset({"every", "cron", "once"})
NOT_YET = "not_yet"
MISFIRE = "misfire"


def determine_jobs_to_queue(
    due: Sequence[DueManifest],
    *,
    dead_lettered: AbstractSet[int],
    random: Callable[[], float],
    longest_pass: timedelta,
) -> list[Verdict]:
    """The verdicts on those that there was time for, which is one at least in each pass.

    `dead_lettered` are the manifests that got their dead letter in this very cycle, after they were loaded.
    """
    time_based = [manifest for manifest in due if manifest.schedule_kind in TIME_BASED]
    others = [manifest for manifest in due if manifest.schedule_kind not in TIME_BASED]
    return [
        *_verdicts(time_based, dead_lettered, longest_pass, lambda manifest: _by_schedule(manifest, random)),
        *_verdicts(others, dead_lettered, longest_pass, _by_parent),
    ]


def _verdicts(
    due: Iterable[DueManifest],
    dead_lettered: AbstractSet[int],
    longest: timedelta,
    decide_one: Callable[[DueManifest], Verdict],
) -> Iterator[Verdict]:
    until = time.monotonic() + longest.total_seconds()
    for manifest in due:
        reason = _guard(manifest, dead_lettered)
        yield Blocked(manifest, reason) if reason else _or_refused(manifest, decide_one)
        if time.monotonic() >= until:
            return


def _guard(manifest: DueManifest, dead_lettered: AbstractSet[int]) -> str | None:
    """Why it must not be queued now, whatever its schedule says; a disabled group was not even loaded."""
    guards = {
        "manifest_disabled": not manifest.enabled,
        "just_dead_lettered": manifest.id in dead_lettered,
        "dead_letter_open": manifest.has_awaiting_dead_letter,
        "already_queued": manifest.has_queued_work,
        "already_active": manifest.has_active_execution,
    }
    return next((reason for reason, holds in guards.items() if holds), None)


def _or_refused(manifest: DueManifest, decide_one: Callable[[DueManifest], Verdict]) -> Verdict:
    try:
        return decide_one(manifest)
    except (InterlockError, ValueError, OverflowError) as error:  # what is stored cannot be read: it stands alone
        return Refused(manifest, error)


def _by_schedule(manifest: DueManifest, random: Callable[[], float]) -> Verdict:
    if manifest.planned_at is None:
        return LaidDown(manifest, "nothing_planned")
    plan = Plan(manifest.planned_at - manifest.planned_offset, manifest.planned_offset)
    if manifest.planned_at > manifest.now:
        return Replanned(manifest, NOT_YET, plan)
    decision = decide(
        _schedule(manifest.schedule),
        plan,
        now=manifest.now,
        exclusions=_exclusions(manifest.exclusions),
        tz=manifest.time_zone,
        misfire=manifest.misfire,
        threshold=manifest.misfire_threshold,
        variance=manifest.variance,
        random=random,
    )
    if isinstance(decision, Fire):
        return PlannedFire(manifest, fire_key(decision.nominal), next=decision.next)
    return _later(manifest, decision.reason, decision.next)


def _by_parent(manifest: DueManifest) -> Verdict:
    """A success counts by its number, not its time, and only while the run that it stands for is on record."""
    success = manifest.parent_success_id
    if manifest.schedule_kind != "dependent":
        return LaidDown(manifest, manifest.schedule_kind)
    if success is None:
        return LaidDown(manifest, "parent_not_succeeded")
    if success == manifest.consumed_execution_id:
        return LaidDown(manifest, "parent_success_consumed")
    if not manifest.has_successful_execution:
        return LaidDown(manifest, "parent_success_stale")
    allowed = next_allowed(_exclusions(manifest.exclusions), manifest.time_zone, manifest.now)
    if allowed != manifest.now:
        return _later(manifest, "excluded", None if allowed is None else Plan(allowed))
    return PlannedFire(manifest, str(success), consumed=success)


def _later(manifest: DueManifest, reason: str, plan: Plan | None) -> Verdict:
    return LaidDown(manifest, reason) if plan is None else Replanned(manifest, reason, plan)


@lru_cache(maxsize=4096)
def _schedule(stored: str) -> Schedule:
    return decode_schedule(json.loads(stored))


@lru_cache(maxsize=4096)
def _exclusions(stored: str) -> Sequence[Exclusion]:
    return tuple(decode_exclusions(json.loads(stored)))
