"""The ManifestManager: one server at a time finds out what is due and writes it to the work queue.

A cycle is one transaction that opens with a try-lock: who does not get it skips the cycle and waits for nobody, and a
leader that dies leaves nothing behind. PostgreSQL itself ends the transaction of a leader that stands still. What is
told to others (events, notices) is told after the commit, or by the commit.
"""

from __future__ import annotations

import random as random_numbers
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.manifests.cancel_timed_out_jobs import cancel_timed_out_jobs
from interlock.manifests.create_work_queue_entries import create_work_queue_entries
from interlock.manifests.determine_jobs_to_queue import determine_jobs_to_queue
from interlock.manifests.load_manifests import load_manifests
from interlock.manifests.reap_failed_jobs import reap_failed_jobs
from interlock.manifests.reap_stale_in_progress import reap_stale_in_progress
from interlock.manifests.reap_stale_pending import reap_stale_pending
from interlock.manifests.report import report
from interlock.observe.events.manifest import ManifestsLed, ManifestsSkippedCycle
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.loop import IMMEDIATELY
from interlock.store.execution import Executions
from interlock.store.manifest import Manifests
from interlock.store.notify import notify_in
from interlock.store.reaping import Reaping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.manifests.create_work_queue_entries import Written
    from interlock.manifests.entry_policy import EntryPolicies
    from interlock.manifests.settings import ManifestSettings
    from interlock.model.outcome import Ended
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.reaping import Exhausted, Overrun

SHORTEST_SLEEP, LONGEST_SLEEP_IN_VAIN = timedelta(milliseconds=20), timedelta(seconds=1)
_MOST_DOUBLINGS = 10
PASSES_PER_IDLE_TIMEOUT = 3
"""There are two; what else a tick does between two statements takes no time to speak of."""
_IDS_PER_NOTICE = 300


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one tick did, and how long to sleep now. Who was not the leader did nothing."""

    led: bool
    sleep: timedelta
    due: int = 0
    queued: int = 0
    skipped: int = 0
    deferred: int = 0
    refused: int = 0
    timeouts_requested: int = 0
    timed_out: int = 0
    reaped_pending: int = 0
    reaped_in_progress: int = 0
    dead_lettered: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """What the junctions did, to be told once it is committed."""

    due: int
    asked: Sequence[Overrun]
    timed_out: Sequence[Ended]
    stale_pending: Sequence[Ended]
    stale_in_progress: Sequence[Ended]
    exhausted: Sequence[Exhausted]
    written: Written
    more: bool

    @property
    def ended(self) -> list[Ended]:
        return [*self.timed_out, *self.stale_pending, *self.stale_in_progress]


class ManifestManager:
    name = "manifests"

    def __init__(
        self,
        database: Database,
        settings: ManifestSettings,
        *,
        policies: EntryPolicies,
        max_crashes: int,
        emit: Emit,
        clock: Clock | None = None,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self._database, self._settings, self._policies = database, settings, policies
        self._max_crashes, self._emit, self._random = max_crashes, emit, random
        self._clock = clock or DatabaseClock()
        self._manifests, self._reaping = Manifests(database.sql), Reaping(database.sql)
        self._executions = Executions(database.sql)
        self._in_vain = 0  # cycles in a row that could do nothing about what was due

    async def run(self) -> timedelta:
        """One tick, for the loop: answers how long to sleep."""
        return (await self.tick()).sleep

    async def tick(self) -> Cycle:
        began = time.monotonic()
        async with self._database.tick() as conn:
            if not await self._manifests.lead_if_free(conn):
                self._emit(ManifestsSkippedCycle())
                return Cycle(led=False, sleep=self._settings.manifest_manager_polling_interval)
            self._emit(ManifestsLed())
            findings = await self._cycle(conn)
            await self._notify(conn, findings)
            sleep = await self._sleep(conn, findings)
            await failpoints.reach("manifests.before_commit")
        report(findings, self._emit, took=timedelta(seconds=time.monotonic() - began))
        return _cycle_of(findings, sleep)

    async def _cycle(self, conn: Connection) -> Findings:
        """The seven junctions; 2 to 5 work on executions, whatever 1 has loaded."""
        now, settings = self._clock.injected(), self._settings
        limit = settings.max_work_queue_entries_per_cycle
        loaded = await load_manifests(conn, self._manifests, limit=limit, now=now)
        await failpoints.reach("manifests.loaded")
        asked, timed_out = await cancel_timed_out_jobs(conn, self._reaping, self._executions, now=now)
        pending = await reap_stale_pending(
            conn, self._reaping, self._executions, longest=settings.stale_pending_timeout, now=now
        )
        in_progress = await reap_stale_in_progress(
            conn, self._reaping, self._executions, longest=settings.stale_in_progress_timeout, now=now
        )
        exhausted = await reap_failed_jobs(
            conn, self._reaping, loaded.due, max_attempts=self._policies.max_attempts, now=now
        )
        dead_lettered = {dead.manifest_id for dead in exhausted}
        verdicts = determine_jobs_to_queue(
            loaded.due,
            dead_lettered=dead_lettered,
            random=self._random,
            longest_pass=self._database.settings.tick_idle_timeout / PASSES_PER_IDLE_TIMEOUT,
        )
        await failpoints.reach("manifests.before_create")
        written = await create_work_queue_entries(
            conn,
            self._manifests,
            verdicts,
            policies=self._policies,
            limit=limit,
            max_crashes=self._max_crashes,
            now=now,
        )
        more = loaded.more or bool(written.deferred) or len(verdicts) < len(loaded.due)
        return Findings(len(loaded.due), asked, timed_out, pending, in_progress, exhausted, written, more)

    async def _notify(self, conn: Connection, findings: Findings) -> None:
        notices = ["work:"] if findings.written.queued or findings.ended else []
        ids = [str(overrun.execution_id) for overrun in findings.asked]
        ids += [str(ended.execution_id) for ended in findings.timed_out]
        starts = range(0, len(ids), _IDS_PER_NOTICE)
        notices += ["cancel:" + ",".join(ids[start : start + _IDS_PER_NOTICE]) for start in starts]
        notices += [f"ended:{ended.first_entry_id}" for ended in findings.ended]
        if notices:
            await notify_in(conn, self._database, notices)

    async def _sleep(self, conn: Connection, findings: Findings) -> timedelta:
        """Until the next marker; at once if more is due, unless nothing could be done about what was.

        What is due and held by somebody may be held for long: it is looked at again soon, and then ever more seldom.
        """
        written = findings.written
        advanced = bool(written.queued or written.skipped or written.refused)
        in_vain, self._in_vain = self._in_vain, 0
        if findings.more and advanced:
            return IMMEDIATELY
        if any(ended.wakes_manager for ended in findings.ended):
            return IMMEDIATELY
        longest = self._settings.manifest_manager_polling_interval
        if findings.more or written.passed_over:
            self._in_vain = 0 if advanced else in_vain + 1
            soon = SHORTEST_SLEEP * 2 ** min(in_vain, _MOST_DOUBLINGS)
            longest = min(soon, LONGEST_SLEEP_IN_VAIN, longest)
        ahead = await self._manifests.time_to_next_marker(conn, now=self._clock.injected())
        return longest if ahead is None else max(SHORTEST_SLEEP, min(ahead, longest))


def _cycle_of(findings: Findings, sleep: timedelta) -> Cycle:
    written = findings.written
    return Cycle(
        led=True,
        sleep=sleep,
        due=findings.due,
        queued=len(written.queued),
        skipped=len(written.skipped),
        deferred=len(written.deferred),
        refused=len(written.refused),
        timeouts_requested=len(findings.asked),
        timed_out=len(findings.timed_out),
        reaped_pending=len(findings.stale_pending),
        reaped_in_progress=len(findings.stale_in_progress),
        dead_lettered=len(findings.exhausted) + sum(ended.dead_letter_id is not None for ended in findings.ended),
    )
