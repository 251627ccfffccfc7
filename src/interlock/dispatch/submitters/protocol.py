"""How dispatched work reaches whoever runs it.

A local submitter leaves the work in the database, in the transaction that dispatched it, and is told after the commit.
A remote one takes the work elsewhere, after the commit, one piece at a time; what it fails to take is queued again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.work import Dispatched


class LocalSubmitter(Protocol):
    async def committed(self, dispatched: Sequence[Dispatched]) -> None:
        """These executions may be claimed from now on."""


class Submission(NamedTuple):
    """One execution to be run elsewhere; the input is JSON."""

    execution_id: int
    entry_id: int
    train: str
    input: str
    attempt: int


class Submitter(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def trains(self) -> frozenset[str]:
        """The trains that are routed to it, aliases included."""

    async def submit(self, submission: Submission) -> None:
        """Hand it over; raises if it was not taken."""
