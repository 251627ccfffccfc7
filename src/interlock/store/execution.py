"""The `execution` table: one row per attempt, from its claim to its end and all that follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.model.execution import Abandoned, Activation, Child, Interruption
from interlock.model.lifecycle import ExecutionState
from interlock.model.outcome import Ended

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from interlock.model.execution import Policy
    from interlock.model.outcome import Ending
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

MANUAL = "manual"


class Executions:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def end(self, conn: Connection, endings: Sequence[Ending], *, now: datetime | None) -> list[Ended]:
        """End these executions and write all that follows from it, in the caller's transaction.

        An execution that is not active any more, or that another claim holds by now, is left alone and is missing from
        the answer. What follows: a retry, a requeue in place (worker_lost), a snooze entry or a dead letter; the key
        moves along or is freed; the manifest's success, its marker and those of its dependents.
        """
        if not endings:
            return []
        ids = [ending.execution_id for ending in endings]
        await self._sql["execution/lock_entries"].fetch(conn, ids=ids)
        rows = await self._sql["execution/end"].fetch(conn, now=now, **_columns(endings))
        due = await self._settle_manifests(conn, rows, now)
        return [_ended(row, due) for row in rows]

    async def complete(
        self, conn: Connection, ids: list[int], tokens: list[UUID], outputs: list[str], *, now: datetime | None
    ) -> list[int]:
        """End plain executions (no manifest, no key) as completed; answers those that were still held."""
        rows = await self._sql["execution/complete"].fetch(conn, ids=ids, tokens=tokens, outputs=outputs, now=now)
        return [row[0] for row in rows]

    async def outcomes(
        self, conn: Connection, ids: list[int], tokens: list[UUID]
    ) -> dict[int, tuple[ExecutionState, str | None]]:
        """State and failure of those executions that were last claimed with these tokens."""
        rows = await self._sql["execution/outcomes"].fetch(conn, ids=ids, tokens=tokens)
        return {row["id"]: (ExecutionState(row["state"]), row["failure"]) for row in rows}

    async def unblock(self, conn: Connection, manifest_ids: Collection[int], *, now: datetime | None) -> set[int]:
        """Give those that nothing blocks their marker back; answers which are due now."""
        ids = sorted(manifest_ids)
        await self._sql["execution/lock_manifests"].fetch(conn, ids=ids, succeeded=[])
        return await self._unblock_locked(conn, ids, now)

    async def lock_lost(self, conn: Connection, *, within: timedelta, limit: int) -> list[Abandoned]:
        """Active executions of servers that ended within this time, locked; those locked by others are left out."""
        rows = await self._sql["execution/lost"].fetch(conn, within=within, limit=limit)
        return [Abandoned._make(row) for row in rows]

    async def watch(self, conn: Connection, ids: list[int], tokens: list[UUID]) -> list[Interruption]:
        """Those of the held executions that are to stop or are not held any more."""
        rows = await self._sql["execution/watch"].fetch(conn, ids=ids, tokens=tokens)
        return [Interruption._make(row) for row in rows]

    async def progress(
        self,
        conn: Connection,
        execution_id: int,
        token: UUID,
        *,
        junction: str,
        index: int,
        total: int,
    ) -> Interruption | None:
        """Record the junction that begins; answers an interruption if there is one."""
        row = await self._sql["execution/progress"].fetchrow(
            conn, id=execution_id, token=token, junction=junction, index=index, total=total
        )
        if row is None:
            return Interruption(execution_id, None, lost=True)
        return Interruption(execution_id, row["cancel_cause"], lost=False) if row["cancel_cause"] else None

    async def hold_own(self, conn: Connection, execution_id: int, token: UUID) -> bool:
        """Whether it is still held with this token; it is then until the end of the transaction."""
        return await self._sql["execution/hold_own"].fetchrow(conn, id=execution_id, token=token) is not None

    async def hold_child(self, conn: Connection, external_id: str, *, parent_id: int) -> Child | None:
        """A dormant child, held until the end of the transaction; None says that the parent has no such child."""
        row = await self._sql["execution/hold_child"].fetchrow(conn, external_id=external_id, parent_id=parent_id)
        return None if row is None else Child._make(row)

    async def activate(
        self,
        conn: Connection,
        child_id: int,
        *,
        caused_by: int,
        train: str | None,
        input: str | None,  # noqa: A002  the column's own word
        priority: int | None,
        boost: int,
        policy: Policy,
        now: datetime | None,
    ) -> Activation:
        """Queue a dormant child that is held."""
        [row] = await self._sql["execution/activate"].fetch(
            conn,
            child_id=child_id,
            caused_by=caused_by,
            train=train,
            input=input,
            priority=priority,
            boost=boost,
            now=now,
            **policy._asdict(),
        )
        await failpoints.reach("activate.queued")
        return Activation._make(row)

    async def _settle_manifests(self, conn: Connection, rows: Sequence[Record], now: datetime | None) -> set[int]:
        """The manifests whose manager has to look now."""
        touched = [row for row in rows if row["manifest_id"] is not None]
        if not touched:
            return set()
        succeeded = [row for row in touched if row["state"] == ExecutionState.COMPLETED]
        ids = sorted({row["manifest_id"] for row in touched})
        parents = sorted({row["manifest_id"] for row in succeeded})
        await self._sql["execution/lock_manifests"].fetch(conn, ids=ids, succeeded=parents)
        due = await self._record_success(conn, succeeded, parents, now) if parents else set()
        blocking = sorted({row["manifest_id"] for row in touched if row["kind"] != MANUAL})
        return due | await self._unblock_locked(conn, blocking, now)

    async def _record_success(
        self, conn: Connection, succeeded: Sequence[Record], parents: list[int], now: datetime | None
    ) -> set[int]:
        await self._sql["execution/record_success"].execute(
            conn,
            manifest_ids=[row["manifest_id"] for row in succeeded],
            execution_ids=[row["id"] for row in succeeded],
            now=now,
        )
        woken = await self._sql["execution/wake_dependents"].fetch(conn, succeeded=parents, now=now)
        return set(parents) if woken else set()

    async def _unblock_locked(self, conn: Connection, ids: list[int], now: datetime | None) -> set[int]:
        if not ids:
            return set()
        rows = await self._sql["execution/unblock"].fetch(conn, ids=ids, now=now)
        return {row["id"] for row in rows if row["due"]}


def _columns(endings: Sequence[Ending]) -> dict[str, list[object]]:
    return {
        "ids": [ending.execution_id for ending in endings],
        "tokens": [ending.claim_token for ending in endings],
        "states": [ending.state.value for ending in endings],
        "outputs": [_text(ending.output) for ending in endings],
        "failures": [ending.failure for ending in endings],
        "error_types": [ending.error_type for ending in endings],
        "error_messages": [ending.error_message for ending in endings],
        "tracebacks": [ending.traceback for ending in endings],
        "junctions": [ending.junction for ending in endings],
        "retry_afters": [ending.retry_after for ending in endings],
    }


def _text(output: str | bytes | None) -> str | None:
    return output.decode() if isinstance(output, bytes) else output


def _ended(row: Record, due: set[int]) -> Ended:
    return Ended(
        execution_id=row["id"],
        state=ExecutionState(row["state"]),
        train=row["train"],
        attempt=row["attempt"],
        first_entry_id=row["first_entry_id"],
        manifest_id=row["manifest_id"],
        manifest=row["manifest"],
        failure=row["failure"],
        retry_entry_id=row["retry_entry_id"],
        retry_at=row["retry_at"],
        dead_letter_id=row["dead_letter_id"],
        dead_letter_reason=row["dead_letter_reason"],
        wakes_manager=row["manifest_id"] in due,
        retry_in=row["retry_in"],
    )
