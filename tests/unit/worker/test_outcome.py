from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from interlock.errors import (
    CancelledByRequest,
    InvalidInput,
    InvalidOption,
    InvalidOutput,
    JunctionFailed,
    LeaseLost,
    PayloadTooLarge,
)
from interlock.model.execution import Claim
from interlock.model.outcome import Cancel, Retry, Snooze
from interlock.trains.registry import Registry
from interlock.worker.job import Cause, ExecutionLost, Job
from interlock.worker.outcome import completed, ending_of, unstorable

MINUTE = timedelta(minutes=1)


def a_job(cause: Cause | None = None, *, has_input: bool = True) -> Job:
    async def work() -> None: ...

    train = Registry().train(name="work")(work)
    claim = Claim(7, "work", "{}", 1, 1, MINUTE, datetime.now(UTC), None, None, None, keyed=False)
    job = Job(claim, train, token=uuid4(), server=uuid4(), services=None)
    job.cause, job.has_input = cause, has_input
    return job


def junction_failed() -> JunctionFailed:
    failed = JunctionFailed(train="work", junction="write")
    failed.__cause__ = KeyError("x")
    return failed


@pytest.mark.parametrize(
    ("error", "cause", "expected"),
    [
        (ValueError("no"), None, ("failed", "error", "ValueError")),
        (SystemExit(3), None, ("failed", "error", "SystemExit")),
        (MemoryError(), None, ("failed", "error", "MemoryError")),
        (Retry(MINUTE), None, ("failed", "error", "interlock.model.outcome.Retry")),
        (Snooze(MINUTE), None, ("snoozed", None, "interlock.model.outcome.Snooze")),
        (Cancel("why"), None, ("cancelled", None, "interlock.model.outcome.Cancel")),
        (junction_failed(), None, ("failed", "error", "KeyError")),
        (
            InvalidOutput(train="work", problem="x"),
            None,
            ("failed", "invalid_output", "interlock.errors.InvalidOutput"),
        ),
        (
            PayloadTooLarge(what="the output", size=2, limit=1),
            None,
            ("failed", "invalid_output", "interlock.errors.PayloadTooLarge"),
        ),
        (asyncio.CancelledError(), Cause.PERSON, ("cancelled", None, None)),
        (CancelledByRequest(train="work"), Cause.PERSON, ("cancelled", None, None)),
        (asyncio.CancelledError(), Cause.TIMEOUT, ("failed", "timeout", "TimeoutError")),
        (CancelledByRequest(train="work"), Cause.TIMEOUT, ("failed", "timeout", "TimeoutError")),
        (asyncio.CancelledError(), None, ("failed", "error", "asyncio.exceptions.CancelledError")),
        (ValueError("while stopping"), Cause.PERSON, ("failed", "error", "ValueError")),
        (LeaseLost(name="a lock of its own"), None, ("failed", "error", "interlock.errors.LeaseLost")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_a_body_raised_decides_how_its_job_ends(error, cause, expected):
    ending = ending_of(a_job(cause), error)
    assert (ending.state.value, ending.failure, ending.error_type) == expected


@pytest.mark.parametrize("cause", [Cause.LOST, Cause.SHUTDOWN])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), ExecutionLost(name="x"), CancelledByRequest(train="work")])
def test_a_job_that_belongs_to_another_or_is_handed_back_is_not_ended(cause, error):
    assert ending_of(a_job(cause), error) is None


def test_an_own_delay_travels_with_the_ending():
    assert ending_of(a_job(), Retry(MINUTE)).retry_after == MINUTE
    assert ending_of(a_job(), Snooze(MINUTE)).retry_after == MINUTE


def test_an_input_error_counts_as_one_only_before_the_body_began():
    error = InvalidInput(train="work", problem="x")
    assert ending_of(a_job(has_input=False), error).failure == "invalid_input"
    assert ending_of(a_job(has_input=True), error).failure == "error"


def test_the_failed_junction_is_named():
    assert ending_of(a_job(), junction_failed()).junction == "write"


def test_a_completed_ending_carries_the_output_and_the_proof_of_the_claim():
    job = a_job()
    job.output = "1"
    ending = completed(job)
    assert (ending.execution_id, ending.claim_token, ending.output) == (7, job.token, "1")


def test_what_could_not_be_stored_is_said_in_words_that_can():
    ending = unstorable(a_job(), ValueError("a\0b"))
    assert ending.failure == "invalid_output"
    assert "\0" not in ending.error_message


@pytest.mark.parametrize("kind", [Retry, Snooze])
@pytest.mark.parametrize("after", [timedelta(seconds=-1), 5, None])
def test_a_delay_that_is_none_is_refused_where_it_is_written(kind, after):
    with pytest.raises(InvalidOption, match=kind.__name__):
        kind(after)
