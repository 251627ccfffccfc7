"""Where the time of an attempt went, as far as anybody still knows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from interlock.model.reading import ExecutionDetail, ExecutionLine
from interlock.operate.timeline import timeline

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def at(seconds: int | None) -> datetime | None:
    return None if seconds is None else NOON + timedelta(seconds=seconds)


def attempt(*, state="completed", queued=0, scheduled=0, started=3, ended=10, cancel=None) -> ExecutionDetail:
    line = dict.fromkeys(ExecutionLine.__slots__)
    detail = dict.fromkeys(ExecutionDetail.__slots__)
    line |= {"id": 1, "state": state, "created_at": at(2), "started_at": at(started), "ended_at": at(ended)}
    detail |= {"line": ExecutionLine(**line), "queued_at": at(queued), "scheduled_at": at(scheduled)}
    return ExecutionDetail(**detail | {"cancel_requested_at": at(cancel)})


def told(execution: ExecutionDetail) -> list[tuple[str, int | None]]:
    return [(step.what, step.after and step.after.seconds) for step in timeline(execution)]


def test_an_attempt_waits_in_the_queue_and_for_a_worker_and_then_runs():
    assert told(attempt()) == [("queued", None), ("dispatched", 2), ("started", 1), ("completed", 7)]


def test_a_delay_that_was_asked_for_is_a_step_of_its_own():
    assert told(attempt(scheduled=1)) == [
        ("queued", None),
        ("ready", 1),
        ("dispatched", 1),
        ("started", 1),
        ("completed", 7),
    ]


def test_what_has_not_happened_is_left_out():
    assert told(attempt(state="pending", started=None, ended=None)) == [("queued", None), ("dispatched", 2)]
    assert told(attempt(state="cancelled", cancel=8)) == [
        ("queued", None),
        ("dispatched", 2),
        ("started", 1),
        ("cancel requested", 5),
        ("cancelled", 2),
    ]


def test_without_its_entry_nobody_knows_how_long_it_waited_in_the_queue():
    assert told(attempt(queued=None, scheduled=None))[0] == ("dispatched", None)
