from __future__ import annotations

import pytest

from interlock.model.lifecycle import ExecutionState, WorkState
from interlock.model.work import Lineage, WorkStatus


def lineage(entry: str | None, execution: str | None, dead_letter: int | None = None) -> Lineage:
    return Lineage(
        entry_state=None if entry is None else WorkState(entry),
        entry_failure=None,
        execution_state=None if execution is None else ExecutionState(execution),
        output=None,
        failure=None,
        junction=None,
        error_type=None,
        error_message=None,
        traceback=None,
        dead_letter_id=dead_letter,
        dead_letter_reason=None,
    )


@pytest.mark.parametrize(
    ("entry", "execution", "dead_letter", "expected"),
    [
        ("queued", None, None, WorkStatus.QUEUED),
        ("queued", "failed", None, WorkStatus.QUEUED),
        ("queued", "snoozed", None, WorkStatus.QUEUED),
        ("dispatched", "pending", None, WorkStatus.PENDING),
        ("dispatched", "in_progress", None, WorkStatus.IN_PROGRESS),
        ("dispatched", "completed", None, WorkStatus.COMPLETED),
        (None, "completed", None, WorkStatus.COMPLETED),
        ("dispatched", "failed", None, WorkStatus.FAILED),
        ("dispatched", "failed", 4, WorkStatus.DEAD_LETTERED),
        (None, "failed", 4, WorkStatus.DEAD_LETTERED),
        ("dispatched", "cancelled", None, WorkStatus.CANCELLED),
        ("cancelled", "failed", None, WorkStatus.CANCELLED),
        ("failed", None, None, WorkStatus.FAILED),
    ],
)
def test_the_status_is_that_of_the_latest_entry_or_attempt(entry, execution, dead_letter, expected):
    assert lineage(entry, execution, dead_letter).status is expected
