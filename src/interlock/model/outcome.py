"""How a run ends: what a train may say itself, and what is written about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from interlock.errors import InvalidOption
from interlock.model.bounds import LONGEST

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from interlock.model.lifecycle import ExecutionState

WORKER_LOST = "worker_lost"
SUBMIT_FAILED = "submit_failed"


class Outcome(Exception):
    """What a train says instead of an output: returned as a value or raised, which is the same."""


@dataclass(eq=False)
class Retry(Outcome):
    """The attempt failed; try again after this time instead of the usual delay. It uses up an attempt."""

    after: timedelta
    reason: str = "another attempt was asked for"

    def __post_init__(self) -> None:
        _checked_delay("Retry", self.after)
        _checked_reason("Retry", self.reason)

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class Snooze(Outcome):
    """Not now: run again after this time. It is no failure and uses up no attempt."""

    after: timedelta
    reason: str = "a later time was asked for"

    def __post_init__(self) -> None:
        _checked_delay("Snooze", self.after)
        _checked_reason("Snooze", self.reason)

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class Cancel(Outcome):
    """The work is not to be done any more; it is neither a success nor a failure and is not tried again."""

    reason: str = "the train cancelled itself"

    def __post_init__(self) -> None:
        _checked_reason("Cancel", self.reason)

    def __str__(self) -> str:
        return self.reason


def _checked_delay(outcome: str, after: object) -> None:
    if not isinstance(after, timedelta) or after < timedelta(0):
        expected = "a timedelta that is not negative, such as timedelta(minutes=5)"
        raise InvalidOption(option=f"{outcome}.after", found=after, expected=expected)
    if after > LONGEST:
        expected = f"a timedelta of at most {LONGEST.days:,} days"
        raise InvalidOption(option=f"{outcome}.after", found=after, expected=expected)


def _checked_reason(outcome: str, reason: object) -> None:
    if not isinstance(reason, str):
        raise InvalidOption(option=f"{outcome}.reason", found=reason, expected="a text")


class Ending(NamedTuple):
    """The end of one execution, as its holder (or whoever closes it for the holder) wants to write it.

    `claim_token` is that of the claim; None stands for an execution that nobody has claimed. `retry_after` replaces the
    delay of the row's own policy when it failed, and is the delay when it was snoozed.
    """

    execution_id: int
    claim_token: UUID | None
    state: ExecutionState
    output: str | bytes | None = None
    failure: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None
    junction: str | None = None
    retry_after: timedelta | None = None


class Ended(NamedTuple):
    """What was written: the end itself and what followed from it."""

    execution_id: int
    state: ExecutionState
    train: str
    attempt: int
    first_entry_id: int
    manifest_id: int | None = None
    manifest: str | None = None
    failure: str | None = None
    retry_entry_id: int | None = None
    retry_at: datetime | None = None
    dead_letter_id: int | None = None
    dead_letter_reason: str | None = None
    wakes_manager: bool = False
    retry_in: timedelta | None = None
