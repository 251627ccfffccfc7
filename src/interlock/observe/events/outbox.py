"""What happens to messages of the outbox, and to the topics and lanes that they travel by."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar

from interlock.observe.events.base import Event, RepeatedFailure


class OutboxEvent(Event):
    subject: ClassVar[str] = "outbox"
    level: ClassVar[int] = logging.DEBUG


class MessageEvent(OutboxEvent):
    message_id: str
    topic: str


class MessagesClaimed(OutboxEvent):
    text: ClassVar[str] = "{count} messages claimed in {took}"
    count: int
    took: timedelta


class MessageDelivered(MessageEvent):
    text: ClassVar[str] = "message {message_id} of {topic} delivered in {took}"
    took: timedelta
    record_id: str | None = None
    redelivery: bool = False


class MessageRetried(MessageEvent):
    """Not delivered; `outcome` is `retry`, which uses up an attempt, or `snooze`, which does not."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "message {message_id} of {topic} is tried again in {retry_in}: {reason}"
    outcome: str
    reason: str
    retry_in: timedelta
    attempt: int

    def severity(self) -> int:
        return logging.DEBUG if self.outcome == "snooze" else self.level


class MessageEnded(MessageEvent):
    """It will not be delivered unless a person decides so: `dead`, `needs_review` or `expired`."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "message {message_id} of {topic} is {state} ({failure}): {reason}"
    state: str
    failure: str
    reason: str = ""

    def severity(self) -> int:
        return logging.WARNING if self.state == "expired" else self.level


class MessageSettleRefused(MessageEvent):
    """What this worker wanted to write about a message was too late; `answer` is stale, terminal or missing."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "message {message_id} of {topic} was {outcome} here, but its claim is {answer}"
    outcome: str
    answer: str
    record_id: str | None = None


class MessagesReleased(OutboxEvent):
    text: ClassVar[str] = "{count} messages given back before they were emitted: {reason}"
    count: int
    reason: str


class MessagesRedriven(OutboxEvent):
    """The audit of an operator's act."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{count} messages redriven by {actor}, {out_of_order} of them out of order"
    count: int
    actor: str
    out_of_order: int


class TopicParked(OutboxEvent):
    """The audit of an operator's act."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    parked: bool
    actor: str

    def sentence(self) -> str:
        return "topic {topic} was parked by {actor}" if self.parked else "topic {topic} was unparked by {actor}"


class TopicBreakerChanged(OutboxEvent):
    """Open: nothing of the topic is claimed until a probe; closed: its messages flow again."""

    level: ClassVar[int] = logging.WARNING
    topic: str
    state: str
    pause: timedelta | None = None

    def sentence(self) -> str:
        if self.state == "closed":
            return "topic {topic} delivers again"
        return "topic {topic} fails again and again; the next probe comes in {pause}"


class LanesChanged(OutboxEvent):
    level: ClassVar[int] = logging.INFO
    text: ClassVar[str] = "this worker holds {held} of {lanes} lanes, {draining} of them on their way to others"
    held: int
    lanes: int
    draining: int


class LanesDisagree(OutboxEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = (
        "this worker counts {lanes} lanes, {other} counts {theirs}; only those with the fewest deliver in order"
    )
    lanes: int
    other: str
    theirs: int


class OutboxFinding(OutboxEvent):
    """A check of the outbox found what it had not found the time before; `interlock outbox doctor` says it again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{check}: {found}; {advice}"
    check: str
    place: str
    found: str
    advice: str


class SettlingFailed(RepeatedFailure):
    subject: ClassVar[str] = "outbox"
    text: ClassVar[str] = "{waiting} outcomes of messages could not be written: {error}"
    waiting: int
