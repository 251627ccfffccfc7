"""How work ended otherwise than by completing, and what a handle says of it."""

from __future__ import annotations

from typing import ClassVar

from interlock.errors.base import InterlockError


class ChildDied(InterlockError):
    """The process that ran a train with `process=True` ended before the train did."""

    train: str
    ended_with: int | None

    def __str__(self) -> str:
        code = self.ended_with or 0
        by = f"signal {-code}" if code < 0 else f"code {code}"
        return f"the child process of train {self.train!r} ended with {by}; was it out of memory?"


class InvalidOutput(InterlockError):
    """A train returned what its annotation, or JSON, does not allow."""

    train: str
    problem: str

    def __str__(self) -> str:
        return f"output of train {self.train!r}: {self.problem}"


class JunctionFailed(InterlockError):
    """A step of a chain raised; the error itself is the cause."""

    train: str
    junction: str

    def __str__(self) -> str:
        cause = "" if self.__cause__ is None else f": {self.__cause__!r}"  # a pickled error arrives without it
        return f"train {self.train!r} failed in junction {self.junction!r}{cause}"


class CancelledByRequest(InterlockError):
    train: str
    reason: str = "cancellation was requested"

    def __str__(self) -> str:
        return f"train {self.train!r} stopped: {self.reason}"


class WorkFailed(InterlockError):
    """What a handle waited for failed and is not tried again; `traceback` is the text of what was raised."""

    entry_id: int
    train: str
    failure: str
    junction: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None

    def __str__(self) -> str:
        place = "" if self.junction is None else f" in junction {self.junction!r}"
        raised = f": {self.error_type}: {self.error_message}" if self.error_type else ""
        return f"entry {self.entry_id} of train {self.train!r} failed{place} ({self.failure}){raised}"


class WorkDeadLettered(WorkFailed):
    """It failed beyond its attempts and waits for a person."""

    dead_letter_id: int
    reason: str

    def __str__(self) -> str:
        return f"{super().__str__()}; dead letter {self.dead_letter_id} ({self.reason}) waits for a person"


class WorkCancelled(InterlockError):
    entry_id: int
    train: str
    reason: str | None = None

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"entry {self.entry_id} of train {self.train!r} was cancelled{why}"


class ResultTimeout(InterlockError, TimeoutError):
    """What a handle waited for is not done yet; the work goes on."""

    exit_code: ClassVar[int] = 6
    entry_id: int
    train: str
    status: str
    timeout: float

    def __str__(self) -> str:
        return (
            f"entry {self.entry_id} of train {self.train!r} is {self.status} after {self.timeout:g} s; it goes on:"
            " ask again, or give it more time"
        )
