"""Junction 4: entries become executions, all in one statement.

If PostgreSQL refuses the statement for the sake of one entry, the tick is rolled back and done again `one_by_one`: each
entry under a savepoint of its own, so the one that cannot be dispatched fails alone, with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from interlock.store.execution import Executions
from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from interlock.model.execution import Claim, Reservation
    from interlock.model.work import Candidate, Dispatched
    from interlock.store.connection import Connection
    from interlock.store.dispatching import Claimed, Dispatching, Refused
    from interlock.store.sql import Catalog
    from interlock.store.taking import Taking


class Unfit(NamedTuple):
    """An entry that could not be dispatched, and what PostgreSQL said."""

    entry_id: int
    refused: Refused
    error: Exception


@dataclass
class HandOver:
    """The transaction of one tick, and what it dispatched: to the slots that were reserved, or to whoever claims it."""

    conn: Connection
    dispatching: Dispatching
    taking: Taking
    reservation: Reservation | None
    now: datetime | None
    dispatched: list[Dispatched] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    async def __call__(self, chosen: Sequence[Candidate]) -> None:
        if self.reservation is None:
            self.dispatched += await self.dispatching.hand_over(self.conn, chosen, now=self.now)
        else:
            taken = await self.taking.take(self.conn, chosen, self.reservation, now=self.now)
            self.dispatched += taken.dispatched
            self.claims += taken.claims


@dataclass
class ClaimForSubmit:
    """The transaction in which work is claimed that this server is about to submit elsewhere."""

    conn: Connection
    dispatching: Dispatching
    submitter: str
    server: UUID
    token: UUID
    now: datetime | None
    claimed: list[Claimed] = field(default_factory=list)

    async def __call__(self, chosen: Sequence[Candidate]) -> None:
        self.claimed += await self.dispatching.claim_for_submit(
            self.conn, chosen, submitter=self.submitter, server=self.server, token=self.token, now=self.now
        )


class Dispatches(Protocol):
    conn: Connection
    dispatching: Dispatching
    now: datetime | None

    async def __call__(self, chosen: Sequence[Candidate]) -> None:
        """Dispatch them, all or none."""


async def dispatch_jobs(hand_over: Dispatches, chosen: Sequence[Candidate]) -> None:
    if chosen:
        await hand_over(chosen)


async def dispatch_one_by_one(hand_over: Dispatches, sql: Catalog, chosen: Sequence[Candidate]) -> list[Unfit]:
    unfit: list[Unfit] = []
    for candidate in chosen:
        try:
            async with hand_over.conn.transaction():
                await hand_over([candidate])
        except Exception as error:
            if is_passing(error):
                raise
            unfit += await _fail_alone(hand_over, candidate, error)
    manifests = {each.refused.manifest_id for each in unfit if each.refused.manifest_id is not None}
    if manifests:
        await Executions(sql).unblock(hand_over.conn, manifests, now=hand_over.now)
    return unfit


async def _fail_alone(hand_over: Dispatches, candidate: Candidate, error: Exception) -> list[Unfit]:
    refused = await hand_over.dispatching.fail_if_queued(
        hand_over.conn, candidate.id, f"{type(error).__name__}: {error}", now=hand_over.now
    )
    return [] if refused is None else [Unfit(candidate.id, refused, error)]
