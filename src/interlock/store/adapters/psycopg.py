"""Connections of psycopg 3. Our cursors are its plain ones, whatever row and cursor factories the user has chosen.

Every statement answers rows, if only none: in a pipeline nothing but the fetch tells what came of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from interlock.store.adapters.protocol import Call, Row

IDLE = 0


class PsycopgAdapter:
    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    @property
    def in_transaction(self) -> bool:
        return _in_transaction(self._conn)

    def fetch(self, call: Call) -> Sequence[Row]:
        from psycopg import Cursor  # noqa: PLC0415  only those who use psycopg have it
        from psycopg.rows import dict_row  # noqa: PLC0415  see above

        call.statement.arguments(call.values)
        with Cursor(self._conn, row_factory=dict_row) as cursor:
            cursor.execute(_query(call), dict(call.values))
            return cursor.fetchall()


class AsyncPsycopgAdapter:
    def __init__(self, conn: psycopg.AsyncConnection[Any]) -> None:
        self._conn = conn

    @property
    def in_transaction(self) -> bool:
        return _in_transaction(self._conn)

    async def fetch(self, call: Call) -> Sequence[Row]:
        from psycopg import AsyncCursor  # noqa: PLC0415  see PsycopgAdapter
        from psycopg.rows import dict_row  # noqa: PLC0415  see above

        call.statement.arguments(call.values)
        async with AsyncCursor(self._conn, row_factory=dict_row) as cursor:
            await cursor.execute(_query(call), dict(call.values))
            return await cursor.fetchall()


def _query(call: Call) -> bytes:
    return call.statement.psycopg.encode()


def _in_transaction(conn: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return not conn.closed and conn.info.transaction_status != IDLE
