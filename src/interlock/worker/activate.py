"""Dormant children: queued when the manifest that owns them asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, LeaseLost, PayloadTooLarge, UnknownChild
from interlock.observe.events.work import ActivationSkipped, WorkEnqueued
from interlock.store.execution import Executions
from interlock.store.notify import notify_in
from interlock.trains.bound import Bound
from interlock.trains.names import checked_name
from interlock.worker.terms import terms_of_train

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.model.execution import Activation, Policy
    from interlock.observe.bus import Emit
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.trains.options import TrainOptions
    from interlock.worker.job import Job


class Activator:
    def __init__(
        self,
        database: Database,
        *,
        policy: Policy,
        options_of: Callable[[str], TrainOptions | None],
        boost: int,
        max_input_bytes: int,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._database, self._policy, self._options_of = database, policy, options_of
        self._boost, self._max_input_bytes = boost, max_input_bytes
        self._clock, self._emit = clock, emit
        self._executions = Executions(database.sql)

    async def activate(self, job: Job, external_id: str, bound: Bound[Any] | None) -> bool:
        """Queue the child, unless it is switched off, queued or active; answers whether it was queued now.

        Only for who still holds the execution: it runs again elsewhere, where it asks for its child again.
        """
        checked_name("external_id", external_id)
        if bound is not None and not isinstance(bound, Bound):
            raise InvalidOption(option=external_id, found=bound, expected="train.bind(…), or nothing for its own input")
        if bound is not None and len(bound.input) > self._max_input_bytes:
            what = f"the input of {bound.train!r}"
            raise PayloadTooLarge(what=what, size=len(bound.input), limit=self._max_input_bytes)
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
        async with self._database.transaction() as conn:
            if not await self._executions.hold_own(conn, job.execution_id, job.token):
                raise LeaseLost(name=f"execution {job.execution_id}")
            child = await self._executions.hold_child(conn, external_id, parent_id=job.claim.manifest_id)
            if child is None:
                return None
            terms = await terms_of_train(
                conn, self._database.sql, child.train, options_of=self._options_of, default=self._policy
            )
            found = await self._executions.activate(
                conn,
                child.manifest_id,
                caused_by=job.execution_id,
                train=None if bound is None else bound.train,
                input=None if bound is None else bound.input.decode(),
                priority=terms.priority,
                boost=self._boost,
                policy=terms.policy,
                now=self._clock.injected(),
            )
            if found.entry_id is not None:
                await notify_in(conn, self._database, ["work"])
        return found


def _skipped(job: Job, child: str) -> ActivationSkipped:
    return ActivationSkipped(child=child, **job.about())
