"""What the end of a body means: decided once, from what it raised and why it was told to stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from interlock.errors import (
    CancelledByRequest,
    InvalidInput,
    InvalidOutput,
    JunctionFailed,
    LeaseLost,
    PayloadTooLarge,
)
from interlock.model.failure import RaisedInChildError, kind_of, message_of, traceback_of
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Cancel, Ending, Retry, Snooze
from interlock.worker.job import Cause

if TYPE_CHECKING:
    from interlock.worker.job import Job

FAILED = ExecutionState.FAILED


def ending_of(job: Job, error: BaseException) -> Ending | None:  # noqa: PLR0911  one line per kind of end
    """How to end a job whose body raised this; None: it is handed back, or left to its new owner."""
    match error:
        case Snooze():
            return _ending(job, ExecutionState.SNOOZED, error)._replace(retry_after=error.after)
        case Retry():
            return _failed(job, "error", error)._replace(retry_after=error.after)
        case Cancel():
            return _ending(job, ExecutionState.CANCELLED, error)
        case asyncio.CancelledError() | CancelledByRequest() | LeaseLost() if job.cause is not None:
            return interrupted(job)
        case CancelledByRequest():
            return _ending(job, ExecutionState.CANCELLED, error)
        case JunctionFailed(junction=junction, __cause__=BaseException() as cause):
            return _failed(job, "error", cause)._replace(junction=junction)
        case RaisedInChildError():
            return _bare(job, FAILED)._replace(
                failure=error.failure,
                error_type=error.kind,
                error_message=error.message,
                traceback=error.traceback,
            )
        case InvalidInput(train=train) if train == job.declaration.name and not job.has_input:
            return _failed(job, "invalid_input", error)
        case InvalidOutput() | PayloadTooLarge(what="the output"):
            return _failed(job, "invalid_output", error)
        case _:
            return _failed(job, "error", error)


def interrupted(job: Job, cause: Cause | None = None) -> Ending | None:
    """How to end a job that stopped because it was told to, by default for the cause that it knows itself."""
    cause = cause or job.cause
    if cause is Cause.TIMEOUT:
        limit = job.claim.timeout.total_seconds() if job.claim.timeout else 0
        message = f"it ran past its timeout of {limit:g} s"
        return _bare(job, FAILED)._replace(failure="timeout", error_type="TimeoutError", error_message=message)
    if cause is Cause.PERSON:
        return _bare(job, ExecutionState.CANCELLED)._replace(error_message="cancelled on request")
    return None


def completed(job: Job) -> Ending:
    return _bare(job, ExecutionState.COMPLETED)._replace(output=job.output)


def unstorable(job: Job, error: BaseException) -> Ending:
    """The database refused what the body left behind: the run failed, in words that can be stored."""
    return _bare(job, FAILED)._replace(
        failure="invalid_output",
        error_type=kind_of(error),
        error_message=f"its outcome could not be stored: {message_of(error)}",
    )


def _failed(job: Job, failure: str, error: BaseException) -> Ending:
    return _ending(job, FAILED, error)._replace(failure=failure, traceback=traceback_of(error))


def _ending(job: Job, state: ExecutionState, error: BaseException) -> Ending:
    return _bare(job, state)._replace(error_type=kind_of(error), error_message=message_of(error))


def _bare(job: Job, state: ExecutionState) -> Ending:
    return Ending(job.execution_id, job.token, state, junction=job.junction)
