"""What people look at: pages of lines by a key, counts that end at a limit, and one thing in full.

Lists read neither payloads nor tracebacks. A page is found by the key of the last line before it, so that the
thousandth costs what the first does.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from interlock.model.dead_letter import DeadLetter
from interlock.model.lifecycle import DeadLetterState
from interlock.model.reading import (
    COUNTED_UP_TO,
    AuditLine,
    DeadLetterDetail,
    DeclaredLine,
    EntryDetail,
    EntryLine,
    ExecutionDetail,
    ExecutionLine,
    GroupLine,
    ManifestDetail,
    ManifestLine,
    ManifestPlan,
    Page,
    Rerun,
)
from interlock.store.dead_letter import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

T = TypeVar("T")
Row = dict[str, Any]

JSON_COLUMNS = frozenset({"schedule", "exclusions", "input", "output", "declared", "before", "after"})
LINEAGE = 100
"""The most attempts at one piece of work that its page shows."""


class Reading:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def manifests(self, conn: Connection, *, limit: int, counted: bool, **wanted: Any) -> Page[ManifestLine]:
        rows = await self._page(conn, "reading/manifests", limit, counted=counted, **wanted)
        return _page(ManifestLine, rows, limit, key="external_id")

    async def queue(self, conn: Connection, *, limit: int, counted: bool, **wanted: Any) -> Page[EntryLine]:
        return _page(EntryLine, await self._page(conn, "reading/queue", limit, counted=counted, **wanted), limit)

    async def executions(self, conn: Connection, *, limit: int, counted: bool, **wanted: Any) -> Page[ExecutionLine]:
        rows = await self._page(conn, "reading/executions", limit, counted=counted, **wanted)
        return _page(ExecutionLine, rows, limit)

    async def dead_letters(self, conn: Connection, *, limit: int, counted: bool, **wanted: Any) -> Page[DeadLetter]:
        rows = await self._page(conn, "reading/dead_letters", limit, counted=counted, **wanted)
        rows = [row | {"state": DeadLetterState(row["state"])} for row in rows]
        return _page(DeadLetter, rows, limit)

    async def audit(self, conn: Connection, *, limit: int, counted: bool, **wanted: Any) -> Page[AuditLine]:
        return _page(AuditLine, await self._page(conn, "audit/list", limit, counted=counted, **wanted), limit)

    async def groups(self, conn: Connection, name: str | None = None) -> list[GroupLine]:
        rows = await self._sql["reading/groups"].fetch(conn, name=name, cap=COUNTED_UP_TO)
        return [_record(GroupLine, _decoded(row)) for row in rows]

    async def plans(
        self, conn: Connection, *, external_id: str | None, group: str | None, now: datetime | None
    ) -> list[ManifestPlan]:
        rows = await self._sql["reading/plans"].fetch(conn, external_id=external_id, group=group, now=now)
        return [_record(ManifestPlan, _decoded(row)) for row in rows]

    async def declared(self, conn: Connection, external_ids: Sequence[str], app: str | None) -> dict[str, DeclaredLine]:
        """What is stored under these ids, and whatever else the app has declared."""
        rows = await self._sql["reading/declared"].fetch(conn, external_ids=list(external_ids), app=app)
        return {row["external_id"]: _record(DeclaredLine, _decoded(row)) for row in rows}

    async def manifest(self, conn: Connection, external_id: str, *, history: int) -> ManifestDetail | None:
        row = await self._sql["reading/manifest"].fetchrow(conn, external_id=external_id)
        if row is None:
            return None
        queued = await self.queue(conn, limit=history, counted=False, **_entries(manifest=external_id))
        ran = await self.executions(conn, limit=history, counted=False, **_runs(manifest=external_id))
        return _record(ManifestDetail, _decoded(row), queued=queued.lines, executions=ran.lines)

    async def entry(self, conn: Connection, entry_id: int) -> EntryDetail | None:
        row = await self._sql["reading/entry"].fetchrow(conn, id=entry_id)
        if row is None:
            return None
        attempts = await self._attempts(conn, row["first_entry_id"])
        found = _decoded(row)
        return _record(EntryDetail, found, line=_record(EntryLine, found), attempts=attempts)

    async def execution(self, conn: Connection, execution_id: int) -> ExecutionDetail | None:
        row = await self._sql["reading/execution"].fetchrow(conn, id=execution_id)
        if row is None:
            return None
        found, lineage = _decoded(row), row["first_entry_id"]
        attempts = await self._attempts(conn, lineage)
        ids = sorted({execution_id, *(attempt.id for attempt in attempts)})
        waiting = await self.queue(conn, limit=LINEAGE, counted=False, **_entries(lineage=lineage))
        letters = await self.dead_letters(conn, limit=LINEAGE, counted=False, **_letters(executions=ids))
        return _record(
            ExecutionDetail,
            found,
            line=_record(ExecutionLine, found),
            attempts=attempts,
            waiting=waiting.lines,
            dead_letters=letters.lines,
            reruns=await self._reruns(conn, ids, [letter.id for letter in letters.lines]),
        )

    async def dead_letter(self, conn: Connection, dead_letter_id: int) -> DeadLetterDetail | None:
        found = await DeadLetters(self._sql).get(conn, [dead_letter_id])
        row = await self._sql["reading/dead_letter"].fetchrow(conn, id=dead_letter_id)
        if not found or row is None:
            return None
        letter = found[dead_letter_id]
        attempts = await self._attempts(conn, letter.first_entry_id)
        return _record(DeadLetterDetail, _decoded(row), letter=letter, attempts=attempts)

    async def _page(self, conn: Connection, name: str, limit: int, *, counted: bool, **wanted: Any) -> list[Row]:
        """One line more than asked for: it says whether another page follows."""
        rows = await self._sql[name].fetch(conn, limit=limit + 1, cap=COUNTED_UP_TO if counted else 0, **wanted)
        return [_decoded(row) | {"total": row["total"] if counted else None} for row in rows]

    async def _attempts(self, conn: Connection, lineage: int) -> Sequence[ExecutionLine]:
        """The attempts at one piece of work, the first of them first."""
        page = await self.executions(conn, limit=LINEAGE, counted=False, **_runs(lineage=lineage))
        return page.lines[::-1]

    async def _reruns(self, conn: Connection, executions: Sequence[int], letters: Sequence[int]) -> list[Rerun]:
        rows = await self._sql["reading/reruns"].fetch(
            conn, executions=[str(one) for one in executions], dead_letters=[str(one) for one in letters]
        )
        return [_record(Rerun, dict(row)) for row in rows]


def _entries(**wanted: Any) -> Row:
    nothing = dict.fromkeys(("train", "group", "manifest", "kind", "lineage"))
    return {**nothing, "state": "queued", "after": 0, **wanted}


def _runs(**wanted: Any) -> Row:
    names = ("state", "active", "train", "group", "manifest", "kind", "failure", "lineage", "before")
    return {**dict.fromkeys(names), **wanted}


def _letters(**wanted: Any) -> Row:
    names = ("state", "train", "manifest", "group", "failure", "executions")
    return {**dict.fromkeys(names), "after": 0, **wanted}


def _decoded(row: Record) -> Row:
    """JSON goes as text, because a user's connection may read it in a way of its own."""
    return {
        name: msgspec.json.decode(value) if name in JSON_COLUMNS and value is not None else value
        for name, value in row.items()
    }


def _record(kind: type[T], row: Row, **more: Any) -> T:
    wanted = {each.name for each in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    return kind(**{name: value for name, value in row.items() if name in wanted and name not in more}, **more)


def _page(kind: type[T], rows: list[Row], limit: int, *, key: str = "id") -> Page[T]:
    shown = rows[:limit]
    following = str(shown[-1][key]) if len(rows) > limit else None
    return Page([_record(kind, row) for row in shown], following, rows[0]["total"] if rows else 0)
