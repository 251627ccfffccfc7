from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.store.adapters.protocol import Call, Row
    from interlock.store.connection import Connection


class AsyncpgAdapter:
    """A connection of asyncpg, from its pool or not; a limit of time in seconds, if not its own."""

    def __init__(self, conn: Connection, *, limit: float | None = None) -> None:
        self._conn, self._limit = conn, limit

    @property
    def in_transaction(self) -> bool:
        return not self._conn.is_closed() and self._conn.is_in_transaction()

    async def fetch(self, call: Call) -> Sequence[Row]:
        arguments = call.statement.arguments(call.values)
        rows = await self._conn.fetch(call.statement.asyncpg, *arguments, timeout=self._limit)
        return cast("Sequence[Row]", rows)
