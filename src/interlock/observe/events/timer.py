"""What happens to timers."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar

from interlock.observe.events.base import Event


class TimerEvent(Event):
    subject: ClassVar[str] = "timers"
    timer: str


class TimerStarted(TimerEvent):
    """`slot` is None where no slot was needed or none could be had."""

    slot: int | None
    host: str

    def sentence(self) -> str:
        return "timer {timer} runs " + ("without a slot" if self.slot is None else "in slot {slot}") + " on {host}"


class TimerEnded(TimerEvent):
    """The outcome is `succeeded`, `failed`, `overran`, `lost` (its slot) or `cancelled` (by a shutdown)."""

    raised_by_users: ClassVar[bool] = True
    outcome: str
    took: timedelta
    error: BaseException | None = None

    def severity(self) -> int:
        return logging.WARNING if self.outcome in ("failed", "overran", "lost") else logging.DEBUG

    def sentence(self) -> str:
        return "timer {timer} {outcome} in {took}" + (": {error}" if self.error is not None else "")


class TimerRetried(TimerEvent):
    raised_by_users: ClassVar[bool] = True
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "timer {timer} failed and is tried again in {retry_in}, in the same slot: {error}"
    error: BaseException
    retry_in: timedelta


class TimerSkipped(TimerEvent):
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "timer {timer} skipped: {reason}"
    reason: str


class TimerSaturated(TimerEvent):
    """Said once, until the timer gets a slot again."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "timer {timer} is skipped because as many of it run as may: {max_concurrency}"
    max_concurrency: int


class TimerOverran(TimerEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "timer {timer} runs longer than its {max_run_time}"
    max_run_time: timedelta
    cancelled: bool


class TimerLockDown(TimerEvent):
    """Said once per change: the timer cannot get slots because the lock service fails."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = (
        "timer {timer} cannot get a slot, the lock service fails; what it does now: {policy} ({error})"
    )
    policy: str
    error: BaseException


class TimerLockBack(TimerEvent):
    text: ClassVar[str] = "timer {timer} gets slots again"


class BreakerChanged(Event):
    """Whether timers still ask the lock service: closed, open (they do not) or half_open (one tries)."""

    subject: ClassVar[str] = "timers"
    text: ClassVar[str] = "the breaker before the lock service is {state}"
    state: str
