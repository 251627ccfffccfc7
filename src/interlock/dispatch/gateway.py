"""The way from trains to the work queue and back: writes orders, and answers how the work is doing.

An order without a connection is one statement on a connection of our own, committed when the call returns; its notice
is coalesced with others of this process. With the caller's connection it is part of the caller's transaction, notice
included, and nobody sees it before the commit.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

from interlock import failpoints
from interlock.dispatch.order import as_entries
from interlock.dispatch.results import Endings
from interlock.errors import (
    DatabaseUnavailable,
    KeyNeedsReadCommitted,
    ResultBeforeCommit,
    ResultTimeout,
    UnknownWork,
    WorkCancelled,
    WorkDeadLettered,
    WorkFailed,
)
from interlock.model.lifecycle import ExecutionState
from interlock.model.work import ENDED, WorkStatus
from interlock.observe.context import current
from interlock.observe.events.work import WorkEnqueued
from interlock.observe.trace import traceparent
from interlock.runtime.portal import portal
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import run, run_blocking
from interlock.store.fault import is_beyond_limit, is_passing
from interlock.store.notify import Notifier, channel_of
from interlock.store.per_loop import PerLoop
from interlock.store.sql import Catalog
from interlock.store.work_queue import WorkQueue
from interlock.trains.handle import Handle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from interlock.model.execution import Policy
    from interlock.model.work import Lineage
    from interlock.observe.bus import Bus
    from interlock.runtime.clock import Clock
    from interlock.store.adapters.protocol import AsyncAdapter, BlockingAdapter, Steps
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.trains.gateway import Order
    from interlock.trains.train import Train

T = TypeVar("T")

FIRST_POLL, LONGEST_POLL = 0.05, 1.0
SECONDS_PER_RUN = 0.001
"""So much longer may a call take for each run of many: many times what it takes an idle database."""
WORK = "work:"


class HandleInTransaction(Handle[T]):
    """A handle on work that was enqueued on the caller's connection."""

    __slots__ = ("adapter",)

    def __init__(
        self,
        id: int,  # noqa: A002  the entry's own word
        train: Train[..., Any, T],
        gateway: WorkGateway,
        adapter: AsyncAdapter | BlockingAdapter,
    ) -> None:
        super().__init__(id, train, gateway)
        self.adapter = adapter


class WorkGateway:
    """The gateway of an app; see `interlock.trains.gateway.Gateway`.

    The schema is asked for at each call: the command line may name another one than the app was made with.
    """

    def __init__(
        self,
        database: Callable[[], Awaitable[Database]],
        schema: Callable[[], str],
        *,
        policy: Policy,
        max_input_bytes: int,
        declared_groups: Callable[[], Collection[str]],
        events: Bus,
        clock: Callable[[], Clock],
    ) -> None:
        self._database, self._schema, self._declared = database, schema, declared_groups
        self._policy, self._max_input_bytes = policy, max_input_bytes
        self._events, self._clock = events, clock
        self._wake: Callable[[], None] = lambda: None
        self._loops: PerLoop[_Home] = PerLoop(_Home, _Home.close)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """How the dispatcher of this very process is woken: sooner than by a notice."""
        self._wake = wake

    async def aclose(self) -> None:
        """Send what waits to be sent, and stop listening."""
        await self._loops.close()

    async def aenqueue(self, conn: object | None, orders: Sequence[Order]) -> list[Handle[Any]]:
        if conn is not None:
            adapter = adapt(conn)
            ids = await run(adapter, self._steps(orders, channel=channel_of(self._schema())))
            return self._handles(orders, ids, adapter)
        database = await self._database()
        notifier = self._loops.get().notifier(database, self._events)
        keyed = any(order.key is not None for order in orders)
        # One that meets a held key writes nothing, so it tells nothing either, and may wait for the holder.
        carrier = None if keyed else notifier.carry()
        channel = None if carrier is None else channel_of(self._schema())
        try:
            ids = await self._write(database, orders, channel=channel, several=keyed and len(orders) > 1)
        except Exception as error:
            if channel is None or not is_beyond_limit(error):
                raise
            # It failed at its commit, because the queue of notices is full: that is to cost latency only.
            carrier, ids = None, await self._write(database, orders, channel=None, several=False)
        self._wake()
        if carrier is None:
            notifier.notify(WORK)
        else:
            notifier.carried(WORK, carrier)
        return self._handles(orders, ids, None)

    async def _write(
        self, database: Database, orders: Sequence[Order], *, channel: str | None, several: bool
    ) -> list[int]:
        """One statement is all or nothing by itself; keys may take several, and may break a deadlock with others."""
        limit = database.command_seconds + len(orders) * SECONDS_PER_RUN

        async def write(own: Connection) -> list[int]:
            return await run(AsyncpgAdapter(own, limit=limit), self._steps(orders, channel=channel))

        try:
            if not several:
                with suppress(KeyNeedsReadCommitted):  # it is the default of this database or of our role in it
                    async with database.connection() as own:
                        return await write(own)
            return await database.retrying(write)
        except TimeoutError as error:
            reason = f"no answer within {limit:g} s; what was to be queued may be queued all the same"
            raise DatabaseUnavailable(where=database.where, reason=reason) from error

    def enqueue(self, conn: object | None, orders: Sequence[Order]) -> list[Handle[Any]]:
        if conn is None:
            return portal.call(self.aenqueue, None, orders)
        adapter = adapt_blocking(conn)
        ids = run_blocking(adapter, self._steps(orders, channel=channel_of(self._schema())))
        return self._handles(orders, ids, adapter)

    async def aresult(self, handle: Handle[Any], timeout: float | None) -> str:  # noqa: ASYNC109  it bounds a wait for another process
        database, poll = await self._database(), FIRST_POLL
        deadline = None if timeout is None else time.monotonic() + timeout
        lineage = outage = None
        with self._loops.get().endings(database, self._events).watching(handle.id) as woken:
            while True:
                woken.clear()
                try:
                    lineage, outage = await self._follow(handle), None
                except Exception as error:
                    # Work that was seen once goes on: an outage makes the wait no shorter.
                    if lineage is None or not is_passing(error):
                        raise
                    outage = error
                if outage is None and lineage.status in ENDED:
                    return _output(handle, lineage)
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise _not_yet(handle, lineage, timeout or 0.0) from outage
                await failpoints.reach("dispatch.waits_for_result")
                await _wait(woken, poll if left is None else min(poll, left))
                poll = min(poll * 2, LONGEST_POLL)

    def result(self, handle: Handle[Any], timeout: float | None) -> str:
        return portal.call(self.aresult, handle, timeout)

    async def astatus(self, handle: Handle[Any]) -> str:
        return (await self._follow(handle)).status.value

    def status(self, handle: Handle[Any]) -> str:
        return portal.call(self.astatus, handle)

    def _steps(self, orders: Sequence[Order], *, channel: str | None) -> Steps[list[int]]:
        running = current()
        return _queue_of(self._schema()).enqueue(
            as_entries(orders, self._policy, max_input_bytes=self._max_input_bytes),
            now=self._clock().injected(),
            caused_by=None if running is None else running.execution_id,
            trace=traceparent(),
            channel=channel,
            declared=self._declared(),
        )

    def _handles(
        self, orders: Sequence[Order], ids: Sequence[int], adapter: AsyncAdapter | BlockingAdapter | None
    ) -> list[Handle[Any]]:
        trains = [order.bound.declaration for order in orders]
        if self._events.watched(WorkEnqueued):
            for id, train in zip(ids, trains, strict=True):  # noqa: A001  the entry's own word
                self._events.emit(WorkEnqueued(entry_id=id, train=train.name, kind="adhoc"))
        if adapter is None:
            return list(map(Handle, ids, trains, repeat(self)))
        return list(map(HandleInTransaction, ids, trains, repeat(self), repeat(adapter)))

    async def _follow(self, handle: Handle[Any]) -> Lineage:
        database = await self._database()
        async with database.connection() as conn:
            lineage = await _queue_of(database.sql.schema).follow(conn, handle.id)
        if lineage is None:
            if isinstance(handle, HandleInTransaction) and handle.adapter.in_transaction:
                raise ResultBeforeCommit(entry_id=handle.id)
            raise UnknownWork(name=str(handle.id))
        return lineage


@cache
def _queue_of(schema: str) -> WorkQueue:
    return WorkQueue(Catalog(schema))


class _Home:
    """What belongs to one event loop."""

    def __init__(self) -> None:
        self._notifier: Notifier | None = None
        self._endings: Endings | None = None

    def notifier(self, database: Database, events: Bus) -> Notifier:
        if self._notifier is None:
            self._notifier = Notifier(database, emit=events.emit)
        return self._notifier

    def endings(self, database: Database, events: Bus) -> Endings:
        if self._endings is None:
            self._endings = Endings(database, emit=events.emit)
        return self._endings

    async def close(self) -> None:
        if self._endings is not None:
            await self._endings.close()
        if self._notifier is not None:
            await self._notifier.close()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _output(handle: Handle[Any], lineage: Lineage) -> str:
    train = handle.train.name
    if lineage.status is WorkStatus.COMPLETED:
        return lineage.output or "null"
    if lineage.status is WorkStatus.CANCELLED:
        ended = lineage.execution_state is ExecutionState.CANCELLED
        raise WorkCancelled(entry_id=handle.id, train=train, reason=lineage.error_message if ended else None)
    if lineage.dead_letter_id is None or lineage.status is not WorkStatus.DEAD_LETTERED:
        raise _failed(WorkFailed, handle, lineage)
    reason = lineage.dead_letter_reason or ""
    raise _failed(WorkDeadLettered, handle, lineage, dead_letter_id=lineage.dead_letter_id, reason=reason)


def _failed(kind: type[WorkFailed], handle: Handle[Any], lineage: Lineage, **more: Any) -> WorkFailed:
    return kind(
        entry_id=handle.id,
        train=handle.train.name,
        failure=lineage.failure or lineage.entry_failure or "unknown",
        junction=lineage.junction,
        error_type=lineage.error_type,
        error_message=lineage.error_message,
        traceback=lineage.traceback,
        **more,
    )


def _not_yet(handle: Handle[Any], lineage: Lineage, timeout: float) -> ResultTimeout:
    return ResultTimeout(entry_id=handle.id, train=handle.train.name, status=lineage.status.value, timeout=timeout)
