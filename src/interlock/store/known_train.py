"""Trains as servers have announced them, for those who do not have their code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class KnownTrain(NamedTuple):
    """A train with its group and the JSON Schema of its input; an empty schema says nothing."""

    name: str
    group: str | None
    input_schema: dict[str, Any]


class KnownTrains:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def get(self, conn: Connection, name: str) -> KnownTrain | None:
        """The train of that name, or the one that had it before a rename."""
        row = await self._sql["known_train/get"].fetchrow(conn, name=name)
        return None if row is None else KnownTrain(row["name"], row["group"], msgspec.json.decode(row["input_schema"]))

    async def names(self, conn: Connection) -> list[str]:
        return [row["name"] for row in await self._sql["known_train/names"].fetch(conn)]
