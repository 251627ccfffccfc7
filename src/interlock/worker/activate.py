"""Dormant children: queued when the manifest that owns them asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, UnknownChild
from interlock.observe.events.work import ActivationSkipped, WorkEnqueued
from interlock.store.execution import Executions
from interlock.store.notify import notify_in
from interlock.trains.bound import Bound
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from interlock.model.execution import Activation, Policy
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.trains.options import TrainOptions
    from interlock.worker.job import Job


class Activator:
    def __init__(self, database: Database, *, policy: Policy, boost: int, clock: Clock, emit: Emit) -> None:
        self._database, self._policy, self._boost = database, policy, boost
        self._clock, self._emit = clock, emit
        self._executions = Executions(database.sql)

    async def activate(self, job: Job, external_id: str, bound: Bound[Any] | None) -> bool:
        """Queue the child, unless it is queued or active; answers whether it was queued now."""
        checked_name("external_id", external_id)
        if bound is not None and not isinstance(bound, Bound):
            raise InvalidOption(option=external_id, found=bound, expected="train.bind(…), or nothing for its own input")
        found = await self._queue(job, external_id, bound)
        if found is None:
            raise UnknownChild(name=external_id, parent=job.manifest)
        if bound is not None and bound.train != found.train:
            raise InvalidOption(option=external_id, found=bound.train, expected=f"input for its train {found.train!r}")
        if found.entry_id is None:
            self._emit(_skipped(job, external_id))
            return False
        self._emit(WorkEnqueued(entry_id=found.entry_id, train=found.train, kind="dormant", manifest=external_id))
        return True

    async def _queue(self, job: Job, external_id: str, bound: Bound[Any] | None) -> Activation | None:
        if job.claim.manifest_id is None:
            return None
        options = bound.declaration.options if bound is not None else None
        async with self._database.transaction() as conn:
            found = await self._executions.activate(
                conn,
                external_id,
                parent_id=job.claim.manifest_id,
                caused_by=job.execution_id,
                train=None if bound is None else bound.train,
                input=None if bound is None else bound.input.decode(),
                priority=None if options is None else options.priority,
                boost=self._boost,
                policy=self._policy if options is None else policy_of(options, self._policy),
                now=self._clock.injected(),
            )
            if found is not None and found.entry_id is not None:
                await notify_in(conn, self._database, ["work"])
        return found


def policy_of(options: TrainOptions, default: Policy) -> Policy:
    """What the train says about trying again, else the settings."""
    retry = options.retry
    return default._replace(
        max_attempts=options.max_attempts or default.max_attempts,
        timeout=options.timeout or default.timeout,
        retry_delay=retry.delay if retry else default.retry_delay,
        max_retry_delay=retry.max_delay if retry else default.max_retry_delay,
        retry_backoff=retry.factor if retry else default.retry_backoff,
    )


def _skipped(job: Job, child: str) -> ActivationSkipped:
    return ActivationSkipped(child=child, **job.about())
