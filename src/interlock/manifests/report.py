"""What a cycle did, as events; only once it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.manifests.determine_jobs_to_queue import MISFIRE, NOT_YET
from interlock.observe.events.manifest import (
    DeadLettered,
    ManifestDeferred,
    ManifestQueued,
    ManifestSkipped,
    ManifestsTicked,
    ManifestWriteFailed,
    MisfireSkipped,
    StaleReaped,
    TimeoutRequested,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from interlock.manifests.create_work_queue_entries import Written
    from interlock.manifests.manager import Findings
    from interlock.model.due import Blocked, LaidDown, Replanned
    from interlock.model.outcome import Ended
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event


def report(findings: Findings, emit: Emit, *, took: timedelta) -> None:
    for event in (*_of_executions(findings), *_of_manifests(findings.written)):
        emit(event)
    emit(
        ManifestsTicked(
            due=findings.due,
            queued=len(findings.written.queued),
            skipped=len(findings.written.skipped),
            dead_lettered=len(findings.exhausted),
            deferred=len(findings.written.deferred),
            took=took,
        )
    )


def _of_executions(findings: Findings) -> Iterator[Event]:
    for overrun in findings.asked:
        yield TimeoutRequested(
            execution_id=overrun.execution_id,
            train=overrun.train,
            manifest=overrun.manifest,
            attempt=overrun.attempt,
            timeout=overrun.timeout,
        )
    for state, reaped in (("pending", findings.stale_pending), ("in progress", findings.stale_in_progress)):
        yield from (_reaped(ended, state) for ended in reaped)
    yield from (_dead_lettered(ended) for ended in findings.ended if ended.dead_letter_id is not None)
    for dead in findings.exhausted:
        yield DeadLettered(
            execution_id=dead.execution_id,
            train=dead.train,
            manifest=dead.manifest,
            attempt=dead.attempts,
            reason="max_attempts",
            dead_letter_id=dead.dead_letter_id,
        )


def _reaped(ended: Ended, state: str) -> Event:
    return StaleReaped(
        execution_id=ended.execution_id,
        train=ended.train,
        manifest=ended.manifest,
        attempt=ended.attempt,
        state=state,
    )


def _dead_lettered(ended: Ended) -> Event:
    return DeadLettered(
        execution_id=ended.execution_id,
        train=ended.train,
        manifest=ended.manifest,
        attempt=ended.attempt,
        reason=ended.dead_letter_reason or "max_attempts",
        dead_letter_id=ended.dead_letter_id,
    )


def _of_manifests(written: Written) -> Iterator[Event]:
    for fire, _ in written.queued:
        kind = fire.manifest.schedule_kind
        yield ManifestQueued(external_id=fire.manifest.external_id, kind=kind, fire_key=fire.fire_key)
    for verdict in written.skipped:
        yield from _skipped(verdict)
    for fire in written.deferred:
        yield ManifestDeferred(external_id=fire.manifest.external_id)
    for refused, pause in written.refused:
        yield ManifestWriteFailed(external_id=refused.manifest.external_id, error=refused.error, retry_in=pause)


def _skipped(verdict: Blocked | LaidDown | Replanned) -> Iterator[Event]:
    manifest = verdict.manifest
    if verdict.reason == MISFIRE and manifest.planned_at is not None:
        yield MisfireSkipped(external_id=manifest.external_id, planned_at=manifest.planned_at)
    elif verdict.reason != NOT_YET:
        yield ManifestSkipped(external_id=manifest.external_id, reason=verdict.reason)
