from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.store.adapters.protocol import Call, Row
    from interlock.store.connection import Connection


class AsyncpgAdapter:
    """A connection of asyncpg, from its pool or not."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @property
    def in_transaction(self) -> bool:
        return not self._conn.is_closed() and self._conn.is_in_transaction()

    async def fetch(self, call: Call) -> Sequence[Row]:
        rows = await self._conn.fetch(call.statement.asyncpg, *call.statement.arguments(call.values))
        return cast("Sequence[Row]", rows)
