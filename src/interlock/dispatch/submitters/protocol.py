"""How dispatched work reaches whoever runs it.

A local submitter leaves the work in the database, in the transaction that dispatched it, and is told after the commit.
A remote one takes the work elsewhere, after the commit, one piece at a time; what it fails to take is queued again,
and what it has no room for waits as if nothing had been tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.work import Dispatched


class LocalSubmitter(Protocol):
    async def committed(self, dispatched: Sequence[Dispatched]) -> None:
        """These executions may be claimed from now on."""


class Submission(NamedTuple):
    """One execution to be run elsewhere; the input is JSON. Until somebody takes it over, it is held by the token."""

    execution_id: int
    entry_id: int
    train: str
    input: str
    attempt: int
    token: UUID


class NoRoom(Exception):
    """Nobody takes it now, though nothing is wrong: ask again after this time, or when a runner tells of room.

    With `train_only` other trains are taken meanwhile.
    """

    def __init__(self, after: timedelta, *, or_notice: bool = False, train_only: bool = False) -> None:
        super().__init__(f"no room before {after} have passed")
        self.after, self.or_notice, self.train_only = after, or_notice, train_only


class Submitter(Protocol):
    @property
    def name(self) -> str: ...

    async def submit(self, submission: Submission) -> None:
        """Hand it over; raises if it was not taken, `NoRoom` if that is no failure."""

    async def aclose(self) -> None:
        """Let go of connections; may be called more than once."""


class Route(NamedTuple):
    """The trains that go to one submitter, by every name they go by."""

    submitter: Submitter
    trains: frozenset[str]
