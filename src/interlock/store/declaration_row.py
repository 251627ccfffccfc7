"""A declared manifest as the columns of its row, in the JSON that PostgreSQL reads a row from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from interlock.model.manifest import schedule_kind
from interlock.model.schedule_json import encode_exclusions, encode_schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from interlock.model.manifest import ManifestDeclaration
    from interlock.model.plan import Plan
    from interlock.model.schedule import Schedule

T = TypeVar("T")

Columns = dict[str, Any]

MOST_ROWS, MOST_BYTES = 1000, 8 * 1024 * 1024
LONGEST_SILENCE = 1.0
"""Seconds that may go by between two statements while rows are worked out: a plan among exclusions takes its time."""
_PLAIN = ("train", "time_zone", "enabled", "priority", "max_attempts", "retry_backoff")
_DURATIONS = ("variance", "misfire_threshold", "retry_delay", "max_retry_delay", "timeout")


def columns_of(
    declaration: ManifestDeclaration,
    statements: Iterable[str],
    *,
    schedule: Schedule,
    groups: Mapping[str, int],
    parent_id: int | None,
) -> Columns:
    """The columns that these statements of a declaration fill; the schedule is the one resolved for this row."""
    filled: Columns = {}
    for name in statements:
        if name in _PLAIN:
            filled[name] = getattr(declaration, name)
        elif name in _DURATIONS:
            filled[name] = interval(getattr(declaration, name))
    if "input" in statements:
        filled["input"] = msgspec.Raw(declaration.input)
    if "group" in statements:
        filled["group_id"] = groups[declaration.group]
    if "exclusions" in statements:
        filled["exclusions"] = encode_exclusions(declaration.exclusions)
    if "misfire" in statements:
        filled["misfire"] = str(declaration.misfire)
    if "schedule" in statements:
        filled |= {
            "schedule_kind": schedule_kind(schedule),
            "schedule": encode_schedule(schedule),
            "parent_id": parent_id,
        }
    return filled


def plan_columns(plan: Plan | None) -> Columns:
    if plan is None:
        return {"planned_at": None, "planned_offset": "0"}
    return {"planned_at": plan.planned_at, "planned_offset": interval(plan.offset)}


def interval(duration: timedelta | None) -> str | None:
    """As PostgreSQL reads it without rounding: days, seconds and microseconds stay apart."""
    if duration is None:
        return None
    return f"{duration.days * 24} hours {duration.seconds} seconds {duration.microseconds} microseconds"


def parts(many: Sequence[T]) -> Iterator[Sequence[T]]:
    """Pieces that are dealt with in milliseconds: a transaction that stands still for longer is ended."""
    for begin in range(0, len(many), MOST_ROWS):
        yield many[begin : begin + MOST_ROWS]


def batches(rows: Iterable[Columns]) -> Iterator[str]:
    """The rows as JSON lists that PostgreSQL takes in one piece, whatever the size of their inputs, and before it ends
    a transaction that stands still.
    """
    batch: list[bytes] = []
    size, began = 0, time.monotonic()
    for row in rows:
        encoded = msgspec.json.encode(row)
        late = time.monotonic() - began > LONGEST_SILENCE
        if batch and (late or len(batch) == MOST_ROWS or size + len(encoded) > MOST_BYTES):
            yield _listed(batch)
            batch, size, began = [], 0, time.monotonic()
        batch.append(encoded)
        size += len(encoded)
    if batch:
        yield _listed(batch)


def _listed(rows: list[bytes]) -> str:
    return (b"[" + b",".join(rows) + b"]").decode()
