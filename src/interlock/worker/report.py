"""What the rest of the world hears of the end of jobs: events for those who watch, notices for those who wait."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.model.lifecycle import ExecutionState
from interlock.observe.events.manifest import DeadLettered
from interlock.observe.events.work import ExecutionSettled, SettleFailed, SettleRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from interlock.model.outcome import Ended, Ending
    from interlock.observe.bus import Emit
    from interlock.observe.events.base import Event
    from interlock.worker.hooks import Hooks
    from interlock.worker.job import Job

IDS_PER_NOTICE = 350  # a notice holds 8,000 bytes, a number up to 20


class Report:
    def __init__(
        self,
        *,
        emit: Emit,
        notify: Callable[[str], None],
        freed: Callable[[], None],
        watched: Callable[[type[Event]], bool],
        hooks: Hooks | None = None,
    ) -> None:
        self._emit, self._notify, self._freed, self._watched = emit, notify, freed, watched
        self._hooks = hooks

    @property
    def waiting(self) -> int:
        """How many ends are written of which not everybody has heard."""
        return 0 if self._hooks is None else self._hooks.waiting

    def completed(self, jobs: Sequence[Job]) -> None:
        """Plain successes, many at a time."""
        if not jobs:
            return
        if self._watched(ExecutionSettled):
            for job in jobs:
                self._emit(_settled(job, ExecutionState.COMPLETED))
        if self._hooks is not None and self._hooks.hear_success:
            for job in jobs:
                self._hooks.succeeded(job)
        announce_ended(self._notify, (job.claim.first_entry_id for job in jobs))
        self._freed()

    def ended(self, jobs: Sequence[Job], endings: Sequence[Ending], ended: Sequence[Ended]) -> None:
        by_id = {one.execution_id: one for one in ended}
        for job, ending in zip(jobs, endings, strict=True):
            one = by_id.get(job.execution_id)
            if one is None:
                self.refused(job, ending.state)
            else:
                self._emit(_settled(job, one.state, one.retry_in))
                self._tell_hooks(job, ending, one)
        announce(self._notify, self._emit, ended)
        if ended:
            self._freed()

    def found_ended(self, jobs: Sequence[Job], endings: Sequence[Ending]) -> None:
        """Ends that an earlier try wrote, though its answer never came: what followed from them is not known here."""
        for job, ending in zip(jobs, endings, strict=True):
            self._emit(_settled(job, ending.state))
            self._tell_hooks(job, ending, None)
        announce_ended(self._notify, (job.claim.first_entry_id for job in jobs))
        for topic in ("work", "manifest"):
            self._notify(topic)
        self._freed()

    def _tell_hooks(self, job: Job, ending: Ending, ended: Ended | None) -> None:
        if self._hooks is None:
            return
        if ending.state is ExecutionState.COMPLETED and self._hooks.hear_success:
            self._hooks.succeeded(job)
        elif ending.state is ExecutionState.FAILED and self._hooks.hear_failure:
            self._hooks.failed(job, ending, ended)

    def refused(self, job: Job, state: ExecutionState) -> None:
        self._emit(SettleRefused(outcome=state.value, **job.about()))

    def failed(self, job: Job, error: BaseException) -> None:
        self._emit(SettleFailed(error=error, **job.about()))


def announce(notify: Callable[[str], None], emit: Emit, ended: Sequence[Ended]) -> None:
    """Dead letters as events, and notices for handles that wait, dispatchers and the manager; after the commit."""
    for one in ended:
        if one.dead_letter_id is not None:
            emit(_dead_lettered(one))
    announce_ended(notify, (one.first_entry_id for one in ended if one.retry_entry_id is None))
    if any(one.retry_entry_id is not None for one in ended):
        notify("work")
    if any(one.wakes_manager for one in ended):
        notify("manifest")


def announce_ended(notify: Callable[[str], None], lineages: Iterable[int]) -> None:
    for notice in named("ended", lineages):
        notify(notice)


def named(topic: str, ids: Iterable[int]) -> Iterator[str]:
    """As few notices as hold all these ids."""
    names = [str(one) for one in ids]
    for start in range(0, len(names), IDS_PER_NOTICE):
        yield f"{topic}:{','.join(names[start : start + IDS_PER_NOTICE])}"


def _settled(job: Job, state: ExecutionState, retry_in: timedelta | None = None) -> ExecutionSettled:
    return ExecutionSettled(
        outcome=state.value,
        took=timedelta(seconds=time.monotonic() - job.started),
        error=job.error if state is ExecutionState.FAILED else None,
        retry_in=retry_in,
        **job.about(),
    )


def _dead_lettered(one: Ended) -> DeadLettered:
    return DeadLettered(
        execution_id=one.execution_id,
        train=one.train,
        manifest=one.manifest,
        attempt=one.attempt,
        reason=one.dead_letter_reason or "",
        dead_letter_id=one.dead_letter_id,
    )
