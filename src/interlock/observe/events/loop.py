"""What happens to the loops and components of one process."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar

from interlock.observe.events.base import Event, RepeatedFailure


class LoopFailed(RepeatedFailure):
    subject: ClassVar[str] = "loop"
    text: ClassVar[str] = "loop {loop} failed (time {consecutive}), next try in {retry_in}: {error}"
    loop: str
    retry_in: timedelta


class LoopRecovered(Event):
    subject: ClassVar[str] = "loop"
    text: ClassVar[str] = "loop {loop} works again after {failures} failures in {after}"
    loop: str
    failures: int
    after: timedelta


class SupervisorEvent(Event):
    subject: ClassVar[str] = "supervisor"


class ComponentFailed(SupervisorEvent):
    """A component ended although nobody asked it to, or failed while it was asked to end."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "component {component} failed: {error}"
    component: str
    error: BaseException


class ComponentAbandoned(SupervisorEvent):
    """A component did not end even though it was cancelled; the process goes on without it."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "component {component} did not end after it was cancelled; left behind"
    component: str


class Draining(SupervisorEvent):
    text: ClassVar[str] = "stopping: waiting up to {timeout} for {jobs} running jobs"
    jobs: int
    timeout: timedelta


class Stopped(SupervisorEvent):
    text: ClassVar[str] = "stopped in {took}"
    took: timedelta
    forced: bool
