"""What a server says about the ports that it opens."""

from __future__ import annotations

import logging
from typing import ClassVar

from interlock.observe.events.base import Event


class ProbesListening(Event):
    subject: ClassVar[str] = "probes"
    text: ClassVar[str] = "probes answer at http://{host}:{port}/live, /ready and /startup"
    host: str
    port: int


class RunnerListening(Event):
    subject: ClassVar[str] = "runner"
    text: ClassVar[str] = "work is taken at http://{host}:{port}/executions"
    host: str
    port: int


class TakeOverFailed(Event):
    """A runner could not write that it takes the work; whoever submitted it tries again."""

    subject: ClassVar[str] = "runner"
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "execution {execution_id} of {train} could not be taken over: {error}"
    execution_id: int
    train: str
    error: BaseException
