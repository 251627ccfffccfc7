"""What happens to work between the queue and its end."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import Any, ClassVar
from uuid import UUID  # noqa: TC003  see above

from interlock.observe.events.base import Event, ExecutionEvent


class WorkEnqueued(Event):
    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "entry {entry_id} of {train} enqueued ({kind})"
    entry_id: int
    train: str
    kind: str
    manifest: str | None = None

    def about(self) -> dict[str, Any]:
        return {"train": self.train, "manifest": self.manifest}


class WorkDispatched(ExecutionEvent):
    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "entry {entry_id} of {train} dispatched as execution {execution_id}"
    entry_id: int


class DispatchTicked(Event):
    """What one cycle of the dispatcher did; lost claims are entries that another dispatcher held."""

    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "{dispatched} dispatched in {took}, {skipped} skipped, {lost} claims lost to others"
    dispatched: int
    skipped: int
    lost: int
    took: timedelta


class EntryRefused(Event):
    """An entry that could not be dispatched; it failed alone."""

    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "entry {entry_id} of {train} could not be dispatched and failed: {error}"
    entry_id: int
    train: str
    error: BaseException

    def about(self) -> dict[str, Any]:
        return {"train": self.train}


class SubmitFailed(ExecutionEvent):
    """A submitter did not take the work; no failure of the train."""

    subject: ClassVar[str] = "work"
    submitter: str
    error: BaseException
    final: bool

    def severity(self) -> int:
        return logging.ERROR if self.final else logging.WARNING

    def sentence(self) -> str:
        follows = "left to a person" if self.final else "queued again"
        return "submitter {submitter} did not take execution {execution_id} of {train}: {error}; " + follows


class WorkClaimed(ExecutionEvent):
    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "execution {execution_id} of {train} claimed"


class ExecutionSettled(ExecutionEvent):
    """The end of one attempt; a failed one says why and, if it is tried again, when."""

    raised_by_users: ClassVar[bool] = True
    subject: ClassVar[str] = "work"
    outcome: str
    took: timedelta
    error: BaseException | None = None
    retry_in: timedelta | None = None

    def severity(self) -> int:
        return logging.WARNING if self.outcome == "failed" else logging.INFO

    def sentence(self) -> str:
        cause = ": {error}" if self.error is not None else ""
        retry = "; next attempt in {retry_in}" if self.retry_in is not None else ""
        return "execution {execution_id} of {train} {outcome} in {took}" + cause + retry


class ExecutionRecovered(ExecutionEvent):
    """Its server was lost; the work is queued again in its old place."""

    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "execution {execution_id} of {train} was lost with server {server}; queued again"
    server: UUID


class SettleRefused(ExecutionEvent):
    """The worker no longer owned the execution, so its outcome was not written."""

    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = (
        "execution {execution_id} of {train} ended {outcome} here, but belongs to another by now; ignored"
    )
    outcome: str


class SettleFailed(ExecutionEvent):
    """Its outcome could not be written at all; its timeout or the end of its server will close it."""

    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "the end of execution {execution_id} of {train} could not be written: {error}"
    error: BaseException


class HookFailed(ExecutionEvent):
    """A function that was to hear of the end raised; the end itself is written."""

    raised_by_users: ClassVar[bool] = True
    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "the {occasion} hook {hook} failed after execution {execution_id} of {train}: {error}"
    occasion: str
    hook: str
    error: BaseException


class ExecutionReleased(ExecutionEvent):
    """Handed back for any worker to claim, with the same attempt."""

    subject: ClassVar[str] = "work"
    text: ClassVar[str] = "execution {execution_id} of {train} handed back: {reason}"
    reason: str


class ActivationSkipped(ExecutionEvent):
    subject: ClassVar[str] = "work"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{train} wanted to activate {child}, which is switched off, queued or active; skipped"
    child: str


class CancelRequested(Event):
    """A person asked for work to stop."""

    subject: ClassVar[str] = "work"
    text: ClassVar[str] = (
        "cancelled by {actor}: {entries} queued, {ended} not yet begun; {asked} running were asked to stop"
    )
    actor: str | None
    entries: int
    ended: int
    asked: int


class DeadLetterResolved(Event):
    subject: ClassVar[str] = "work"
    text: ClassVar[str] = "dead letter {dead_letter_id} {state} by {actor}"
    dead_letter_id: int
    state: str
    actor: str | None
    entry_id: int | None = None
