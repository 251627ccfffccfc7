"""What the manager finds and does about manifests."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import Any, ClassVar

from interlock.observe.events.base import Event, ExecutionEvent


class ManifestsTicked(Event):
    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = (
        "{due} due: {queued} queued, {skipped} skipped, {dead_lettered} dead-lettered, {deferred} deferred, in {took}"
    )
    due: int
    queued: int
    skipped: int
    dead_lettered: int
    deferred: int
    took: timedelta


class ManifestsLed(Event):
    """The lead is with this server, and its cycle begins."""

    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "this server runs the cycle"


class ManifestsSkippedCycle(Event):
    """Another server runs this cycle."""

    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "another server runs this cycle"


class ManifestEvent(Event):
    subject: ClassVar[str] = "manifests"
    external_id: str

    def about(self) -> dict[str, Any]:
        return {"manifest": self.external_id}


class ManifestQueued(ManifestEvent):
    text: ClassVar[str] = "manifest {external_id} queued ({kind}, {fire_key})"
    kind: str
    fire_key: str | None


class ManifestSkipped(ManifestEvent):
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "manifest {external_id} is due and not queued: {reason}"
    reason: str


class ManifestDeferred(ManifestEvent):
    """Due, but beyond what one cycle queues; the next cycle follows at once."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "manifest {external_id} waits for the next cycle"


class ManifestWriteFailed(ManifestEvent):
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "manifest {external_id} could not be queued and is set aside for {retry_in}: {error}"
    error: BaseException
    retry_in: timedelta


class MisfireSkipped(ManifestEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = (
        "manifest {external_id} missed its run of {planned_at:%Y-%m-%dT%H:%M:%S%z}; skipped as declared"
    )
    planned_at: datetime


class DeadLettered(ExecutionEvent):
    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "train {train} waits for a person after attempt {attempt}: {reason}"
    reason: str
    dead_letter_id: int | None = None


class TimeoutRequested(ExecutionEvent):
    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "execution {execution_id} of {train} ran past its timeout of {timeout}; asked to stop"
    timeout: timedelta


class StaleReaped(ExecutionEvent):
    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "execution {execution_id} of {train} was {state} for too long and nobody holds it; failed"
    state: str


class MarkersRepaired(Event):
    """In a healthy system there is nothing to repair."""

    subject: ClassVar[str] = "manifests"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{count} manifests had a wrong next run; repaired"
    count: int


class ManifestsSeeded(Event):
    subject: ClassVar[str] = "manifests"
    text: ClassVar[str] = (
        "declared manifests: {created} created, {changed} changed, {unchanged} unchanged, {pruned} pruned"
    )
    created: int
    changed: int
    unchanged: int
    pruned: int


class ManifestPruned(ManifestEvent):
    text: ClassVar[str] = "manifest {external_id} is declared by no server any more; removed"
