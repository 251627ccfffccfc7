"""What a running train can learn about itself, and ask for."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from interlock.errors import NotInTrain
from interlock.observe.context import current
from interlock.runtime.portal import portal
from interlock.worker.job import Job

if TYPE_CHECKING:
    from interlock.trains.bound import Bound


class Services(Protocol):
    """What the worker does for the trains it runs."""

    async def activate(self, job: Job, external_id: str, bound: Bound[Any] | None) -> bool: ...


class CurrentExecution:
    """The attempt that this code runs in."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def id(self) -> int:
        return self._job.execution_id

    @property
    def train(self) -> str:
        return self._job.train

    @property
    def attempt(self) -> int:
        """1 for the first run."""
        return self._job.attempt

    @property
    def manifest(self) -> str | None:
        """The external id of the manifest that it runs for, or None for work that was enqueued."""
        return self._job.manifest

    @property
    def fire_key(self) -> str | None:
        """Names the fire: the same for every attempt at it, so a good idempotency key."""
        return self._job.claim.fire_key

    @property
    def fire_time(self) -> datetime | None:
        """The nominal time of the fire; None for work that no clock started."""
        return _instant(self._job.claim.fire_key)

    @property
    def deadline(self) -> datetime | None:
        """When its timeout ends it, by the database's clock."""
        claim = self._job.claim
        return None if claim.timeout is None else claim.started_at + claim.timeout

    @property
    def cancelled(self) -> bool:
        """Whether it is to stop. A plain function that finds True returns or raises, and is not tried again for it."""
        self._job.heeded = self._job.heeded or self._job.cause is not None
        return self._job.heeded

    def ensure(self) -> None:
        """Raise LeaseLost or CancelledByRequest if it is to stop."""
        self._job.stop_if_marked()

    @property
    def logger(self) -> logging.Logger:
        """A logger for this train; where the app's handlers have `ExecutionFields`, its records name the execution."""
        return logging.getLogger(f"interlock.train.{self._job.train}")

    async def aactivate(self, external_id: str, bound: Bound[Any] | None = None) -> bool:
        """Queue a dormant child of this manifest, with this input; False if it is switched off, queued or active."""
        return await self._job.services.activate(self._job, external_id, bound)

    def activate(self, external_id: str, bound: Bound[Any] | None = None) -> bool:
        """The blocking twin of `aactivate`."""
        return portal.call(self.aactivate, external_id, bound)

    def __repr__(self) -> str:
        return f"CurrentExecution(id={self.id}, train={self.train!r}, attempt={self.attempt})"


def current_execution() -> CurrentExecution:
    """The execution that this code runs in; raises outside of a train that a worker runs."""
    job = current()
    if not isinstance(job, Job):
        raise NotInTrain
    return CurrentExecution(job)


def _instant(fire_key: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(fire_key) if fire_key and not fire_key.isdigit() else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
