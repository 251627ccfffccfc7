"""Settle: what bodies left behind is written in batches, outside their slots.

Outcomes gather for a few milliseconds and share one commit. Plain successes, which nobody schedules and no key guards,
go in one statement; everything else in one transaction of set-wise statements. A batch that the data of one of its
members breaks is written one by one, so nobody else suffers. Large outputs make small batches: one statement with
hundreds of megabytes would take longer than its limit of time, each time it is tried. For the same reason what could
not be written is tried again in smaller parts, and in larger ones as soon as one was. While the database is away
outcomes wait here: the lease of the server still covers them, and each write is refused by itself if the execution
belongs to another by then.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from interlock import failpoints
from interlock.model.lifecycle import ExecutionState
from interlock.runtime.loop import LoopBackoff
from interlock.store.execution import Executions
from interlock.store.fault import is_passing
from interlock.store.line import Line
from interlock.worker.outcome import completed, unstorable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from interlock.model.outcome import Ended, Ending
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.worker.job import Job
    from interlock.worker.report import Report

T = TypeVar("T")

LARGEST_BATCH = 500
LARGEST_TEXT = 8 * 1024 * 1024  # characters of outputs and tracebacks, after which a batch takes no more
ENOUGH = 64  # so many outcomes are worth a commit without waiting for more
BACKOFF = LoopBackoff()


class Settlement(NamedTuple):
    job: Job
    ending: Ending


class Settler:
    def __init__(self, database: Database, *, window: timedelta, clock: Clock, report: Report) -> None:
        self._database, self._clock, self._report = database, clock, report
        self._window = window.total_seconds()
        self._line = Line(database, "worker settle", by_key=True)
        self._executions = Executions(database.sql)
        self._plain: deque[Job] = deque()
        self._others: deque[Settlement] = deque()
        self._in_hand = 0
        self._hurry = False
        self._writing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many outcomes are not written yet, or not heard of by all that want to."""
        return len(self._plain) + len(self._others) + self._in_hand + self._report.waiting

    def complete(self, job: Job) -> None:
        if job.claim.is_plain:
            self._plain.append(job)
        else:
            self._others.append(Settlement(job, completed(job)))
        self._write_soon()

    def end(self, job: Job, ending: Ending) -> None:
        self._others.append(Settlement(job, ending))
        self._write_soon()

    async def flush(self) -> None:
        """Write all that waits, without waiting for more; for as long as it takes."""
        self._hurry = True
        if self._writing is not None:
            await asyncio.shield(self._writing)

    async def close(self) -> None:
        """Give up what is not written by now."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        await self._line.close()

    def _write_soon(self) -> None:
        if self._writing is None:
            # Not in the context of the job that came first: what is written and said here is about many.
            writing = self._write_until_empty()
            self._writing = asyncio.create_task(writing, name="settle", context=Context())

    async def _write_until_empty(self) -> None:
        try:
            while self._plain or self._others:
                if len(self._plain) + len(self._others) < ENOUGH and not self._hurry:
                    await asyncio.sleep(self._window)
                await self._write_batch()
        finally:
            self._writing = None

    async def _write_batch(self) -> None:
        plain, others = _taken(self._plain, _length), _taken(self._others, _length_of_ending)
        self._in_hand = len(plain) + len(others)
        await failpoints.reach("settle.before_write")
        if plain:
            await self._persistently(plain, self._write_plain, lambda job: Settlement(job, completed(job)))
        if others:
            await self._persistently(others, self._write_others, lambda settlement: settlement)
        self._in_hand = 0

    async def _persistently(
        self,
        batch: list[T],
        write: Callable[[list[T], bool], Awaitable[None]],
        settlement_of: Callable[[T], Settlement],
        *,
        unsure: bool = False,
    ) -> None:
        failures, at_once = 0, len(batch)
        while batch:
            part = batch[:at_once]
            try:
                await write(part, unsure)
            except Exception as error:  # noqa: BLE001  an outcome is never dropped for an error that may pass
                if is_passing(error):
                    unsure, failures, at_once = True, failures + 1, max(at_once // 2, 1)
                    await asyncio.sleep(BACKOFF.pause(failures, random.random).total_seconds())
                    continue
                for member in part:
                    await self._write_alone(settlement_of(member), unsure=unsure)
            batch, failures, at_once = batch[len(part) :], 0, at_once * 2

    async def _write_plain(self, jobs: list[Job], unsure: bool) -> None:  # noqa: FBT001  see _persistently
        # By id, as whoever cancels many at once does: two in different orders would lock each other out.
        jobs.sort(key=_id_of)
        async with self._line.connection() as conn:
            written = await self._executions.complete(
                conn,
                [job.claim.execution_id for job in jobs],
                [job.token for job in jobs],
                [job.output for job in jobs],
                now=self._clock.injected(),
            )
        if len(written) == len(jobs):
            self._report.completed(jobs)
            return
        before = await self._written_before(jobs) if unsure else {}
        ours = {*written, *(one for one, found in before.items() if found[0] is ExecutionState.COMPLETED)}
        self._report.completed([job for job in jobs if job.execution_id in ours])
        for job in jobs:
            if job.execution_id not in ours:
                self._report.refused(job, ExecutionState.COMPLETED)

    async def _written_before(self, jobs: Sequence[Job]) -> dict[int, tuple[ExecutionState, str | None]]:
        """How those stand that were claimed with these tokens: an earlier try may have ended them without an answer."""
        async with self._line.connection() as conn:
            return await self._executions.outcomes(
                conn, [job.execution_id for job in jobs], [job.token for job in jobs]
            )

    async def _write_others(self, settlements: list[Settlement], unsure: bool) -> None:  # noqa: FBT001  see _persistently
        ended = await self._end([settlement.ending for settlement in settlements])
        if unsure and len(ended) < len(settlements):
            settlements = await self._without_those_written_before(settlements, {one.execution_id for one in ended})
        self._report.ended([s.job for s in settlements], [s.ending for s in settlements], ended)

    async def _without_those_written_before(self, settlements: list[Settlement], now: set[int]) -> list[Settlement]:
        missing = [s for s in settlements if s.job.execution_id not in now]
        found = await self._written_before([s.job for s in missing])
        before = {s for s in missing if found.get(s.job.execution_id) == (s.ending.state, s.ending.failure)}
        self._report.found_ended([s.job for s in before], [s.ending for s in before])
        return [s for s in settlements if s not in before]

    async def _write_alone(self, settlement: Settlement, *, unsure: bool) -> None:
        async def write(one: list[Settlement], unsure: bool) -> None:  # noqa: FBT001  see _persistently
            try:
                await self._write_others(one, unsure)
            except Exception as error:
                if is_passing(error):
                    raise
                await self._write_failure(one[0].job, error)

        await self._persistently([settlement], write, lambda settlement: settlement, unsure=unsure)

    async def _write_failure(self, job: Job, error: Exception) -> None:
        ending = unstorable(job, error)
        try:
            self._report.ended([job], [ending], await self._end([ending]))
        except Exception as again:
            if is_passing(again):
                raise
            self._report.failed(job, again)

    async def _end(self, endings: Sequence[Ending]) -> list[Ended]:
        return await self._database.retrying(
            lambda conn: self._end_in(conn, endings), transaction=self._line.transaction
        )

    async def _end_in(self, conn: Connection, endings: Sequence[Ending]) -> list[Ended]:
        ended = await self._executions.end(conn, endings, now=self._clock.injected())
        await failpoints.reach("settle.before_commit")
        return ended


def _id_of(job: Job) -> int:
    return job.claim.execution_id


def _taken(waiting: deque[T], length_of: Callable[[T], int]) -> list[T]:
    taken: list[T] = []
    room = LARGEST_TEXT
    while waiting and room > 0 and len(taken) < LARGEST_BATCH:
        one = waiting.popleft()
        taken.append(one)
        room -= length_of(one)
    return taken


def _length(job: Job) -> int:
    return len(job.output)


def _length_of_ending(settlement: Settlement) -> int:
    return len(settlement.ending.output or "") + len(settlement.ending.traceback or "")
