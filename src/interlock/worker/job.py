"""One claimed execution in the hands of this worker, and how it is told to stop."""

from __future__ import annotations

import asyncio
import types
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from interlock.errors import CancelledByRequest, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from uuid import UUID

    from interlock.model.execution import Claim
    from interlock.trains.train import Train
    from interlock.worker.current import Services


class Cause(StrEnum):
    """Why a running job is to stop."""

    TIMEOUT = "timeout"
    PERSON = "person"
    SHUTDOWN = "shutdown"
    LOST = "lost"


class ExecutionLost(LeaseLost, asyncio.CancelledError):
    """The lease loss as an async body meets it: a cancellation for asyncio's own constructs, LeaseLost by name."""


class Job:
    """It is its own logging context: every record written inside the body names this attempt."""

    __slots__ = (
        "began",
        "cause",
        "claim",
        "deadline",
        "declaration",
        "error",
        "has_input",
        "heeded",
        "in_threads",
        "junction",
        "output",
        "server",
        "services",
        "started",
        "task",
        "token",
    )

    def __init__(
        self,
        claim: Claim,
        declaration: Train[..., Any, Any],
        *,
        token: UUID,
        server: UUID,
        services: Services,
    ) -> None:
        self.claim, self.declaration, self.token, self.server, self.services = (
            claim,
            declaration,
            token,
            server,
            services,
        )
        self.started = 0.0
        self.deadline: float | None = None
        self.cause: Cause | None = None
        self.task: asyncio.Task[None] | None = None
        self.junction: str | None = None
        self.error: BaseException | None = None
        self.output = ""
        self.began = self.has_input = self.heeded = False
        self.in_threads = 0

    @property
    def execution_id(self) -> int:
        return self.claim.execution_id

    @property
    def train(self) -> str:
        return self.claim.train

    @property
    def manifest(self) -> str | None:
        return self.claim.manifest

    @property
    def attempt(self) -> int:
        return self.claim.attempt

    def about(self) -> dict[str, Any]:
        """The fields of an event about it."""
        return {
            "execution_id": self.execution_id,
            "train": self.train,
            "manifest": self.manifest,
            "attempt": self.attempt,
        }

    def start(self, now: float) -> None:
        """Its slot is free: from now on its time counts."""
        self.started = now
        if self.claim.timeout is not None:
            self.deadline = now + self.claim.timeout.total_seconds()

    def mark(self, cause: Cause) -> bool:
        """Set why it is to stop; the first word counts, except that what is lost cannot be settled any more."""
        if self.cause is cause or (self.cause is not None and cause is not Cause.LOST):
            return False
        self.cause = cause
        return True

    def interrupt(self, cause: Cause) -> None:
        """Tell it to stop, once; a body in a thread finds out when it asks. Only from the event loop."""
        if self.mark(cause):
            self.cancel()

    def cancel(self) -> None:
        """Let the mark take effect. A task that has not begun would be cancelled before it can say so."""
        if self.task is not None and self.began and not self.in_threads:
            self.task.cancel()

    def stop_if_marked(self) -> None:
        """Raise what a body that asks has to be told."""
        if self.cause is Cause.LOST:
            raise LeaseLost(name=f"execution {self.execution_id}")
        if self.cause is not None:
            raise CancelledByRequest(train=self.train, reason=_REASONS[self.cause])


_REASONS = {
    Cause.TIMEOUT: "it ran past its timeout",
    Cause.PERSON: "cancellation was requested",
    Cause.SHUTDOWN: "its server shuts down",
}


@types.coroutine
def interruptible(body: Coroutine[Any, Any, Any], job: Job) -> Generator[Any, Any, Any]:
    """The result of the body, which meets the loss of its lease as LeaseLost where it would be cancelled."""
    try:
        waiting = body.send(None)
        while True:
            try:
                answer = yield waiting
            except asyncio.CancelledError as request:
                waiting = body.throw(_met_by_body(request, job))
            except BaseException as error:  # noqa: BLE001  the body decides what to do about it
                waiting = body.throw(error)
            else:
                waiting = body.send(answer)
    except StopIteration as end:
        return end.value


def _met_by_body(request: asyncio.CancelledError, job: Job) -> BaseException:
    return ExecutionLost(name=f"execution {job.execution_id}") if job.cause is Cause.LOST else request
