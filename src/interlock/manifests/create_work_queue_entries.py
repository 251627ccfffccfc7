"""Junction 7: the verdicts are written, at most so many entries per cycle, and fairly between the groups.

First all manifests that are to change are locked, those excepted that changed since they were read: a marker that a
parent's success or an operator set meanwhile survives. Then everything is written set-wise. If PostgreSQL
refuses the batch, its entries are written one by one, and a manifest that is refused alone is set aside with its error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from interlock import failpoints
from interlock.errors import WriteRefused
from interlock.manifests.fair_share import choose_fairly
from interlock.model.due import Blocked, FirstEntry, LaidDown, PlannedFire, Refused, Replanned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from interlock.manifests.entry_policy import EntryPolicies
    from interlock.model.due import Verdict
    from interlock.store.connection import Connection
    from interlock.store.manifest import Manifests

V = TypeVar("V", PlannedFire, Blocked, LaidDown, Replanned, Refused)
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Written:
    """What a cycle did; `passed_over` are manifests that changed, were held by somebody or were unblocked since they
    were read.
    """

    queued: list[tuple[PlannedFire, int]] = field(default_factory=list)
    skipped: list[Blocked | LaidDown | Replanned] = field(default_factory=list)
    refused: list[tuple[Refused, timedelta]] = field(default_factory=list)
    deferred: list[PlannedFire] = field(default_factory=list)
    passed_over: int = 0


async def create_work_queue_entries(
    conn: Connection,
    manifests: Manifests,
    verdicts: Sequence[Verdict],
    *,
    policies: EntryPolicies,
    limit: int | None,
    max_crashes: int,
    now: datetime | None,
) -> Written:
    fires, deferred = choose_fairly(_of(PlannedFire, verdicts), limit)
    touched = [*fires, *(verdict for verdict in verdicts if not isinstance(verdict, PlannedFire))]
    held = await manifests.hold_if_unchanged(conn, (verdict.manifest for verdict in touched))
    await failpoints.reach("manifests.held")
    writer = _Writer(conn, manifests, max_crashes, now)
    queued, refused = await writer.queue([_entry(fire, policies) for fire in fires if fire.manifest.id in held])
    to_skip: list[Blocked | LaidDown | Replanned] = [
        *_of(Blocked, touched, held),
        *_of(LaidDown, touched, held),
        *_of(Replanned, touched, held),
    ]
    skipped = await writer.skip(to_skip)
    set_aside = await writer.set_aside([*_of(Refused, touched, held), *refused])
    passed_over = len(touched) - len(held) + len(to_skip) - len(skipped)
    return Written(queued, skipped, set_aside, deferred, passed_over)


def _of(kind: type[V], verdicts: Sequence[Verdict], held: AbstractSet[int] | None = None) -> list[V]:
    return [
        verdict for verdict in verdicts if isinstance(verdict, kind) and (held is None or verdict.manifest.id in held)
    ]


def _entry(fire: PlannedFire, policies: EntryPolicies) -> FirstEntry:
    return FirstEntry(fire, policies.resolve(fire.manifest))


def pause_after(failures: int) -> timedelta:
    """How long a manifest that could not be written is left alone."""
    return min(FIRST_PAUSE * float(1 << min(failures, _MOST_DOUBLINGS)), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes about manifests that this transaction holds."""

    conn: Connection
    manifests: Manifests
    max_crashes: int
    now: datetime | None

    async def queue(self, entries: Sequence[FirstEntry]) -> tuple[list[tuple[PlannedFire, int]], list[Refused]]:
        if not entries:
            return [], []
        refused: list[Refused] = []
        try:
            queued = await self._queue_together(entries)
        except WriteRefused:
            queued, refused = await self._queue_one_by_one(entries)
        groups = {fire.manifest.group_id for fire, _ in queued}
        await self.manifests.rotate_groups(self.conn, groups, now=self.now)
        return queued, refused

    async def skip(self, verdicts: Sequence[Blocked | LaidDown | Replanned]) -> list[Blocked | LaidDown | Replanned]:
        """Answers what was skipped: all but those that nothing blocks any more."""
        blocked, laid_down = _of(Blocked, verdicts), _of(LaidDown, verdicts)
        replanned = _of(Replanned, verdicts)
        if blocked:
            still = await self.manifests.block(self.conn, [verdict.manifest.id for verdict in blocked])
            blocked = [verdict for verdict in blocked if verdict.manifest.id in still]
        if laid_down:
            await self.manifests.lay_down(self.conn, [verdict.manifest.id for verdict in laid_down])
        if replanned:
            await self.manifests.replan(self.conn, replanned)
        return [*blocked, *laid_down, *replanned]

    async def set_aside(self, refused: Sequence[Refused]) -> list[tuple[Refused, timedelta]]:
        paused = [(verdict, pause_after(verdict.manifest.write_failures)) for verdict in refused]
        if paused:
            rows = [(verdict.manifest.id, str(verdict.error), pause) for verdict, pause in paused]
            await self.manifests.set_aside(self.conn, rows, now=self.now)
        return paused

    async def _queue_together(self, entries: Sequence[FirstEntry]) -> list[tuple[PlannedFire, int]]:
        written = await self.manifests.queue(self.conn, entries, max_crashes=self.max_crashes, now=self.now)
        fires = [entry.fire for entry in entries]
        there_already = [fire for fire in fires if fire.manifest.id not in written]
        if there_already:
            await self.manifests.pass_over(self.conn, there_already)
        return [(fire, written[fire.manifest.id]) for fire in fires if fire.manifest.id in written]

    async def _queue_one_by_one(
        self, entries: Sequence[FirstEntry]
    ) -> tuple[list[tuple[PlannedFire, int]], list[Refused]]:
        queued: list[tuple[PlannedFire, int]] = []
        refused: list[Refused] = []
        for entry in entries:
            try:
                queued += await self._queue_together([entry])
            except WriteRefused as error:
                refused.append(Refused(entry.fire.manifest, error))
        return queued, refused
