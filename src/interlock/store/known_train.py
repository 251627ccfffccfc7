"""Trains as servers have announced them, for those who do not have their code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.model.execution import Policy
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


STATED = ("max_attempts", "retry_delay", "max_retry_delay", "retry_backoff", "timeout")


class KnownTrain(NamedTuple):
    """A train with its group and the JSON Schema of its input; an empty schema says nothing."""

    name: str
    group: str | None
    input_schema: dict[str, Any]
    priority: int | None = None
    stated: Mapping[str, Any] = {}
    aliases: tuple[str, ...] = ()

    def policy(self, default: Policy) -> Policy:
        """What the train says about trying again, else the default."""
        return default._replace(**self.stated)


class KnownTrains:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def get(self, conn: Connection, name: str) -> KnownTrain | None:
        """The train of that name, or the one that had it before a rename."""
        row = await self._sql["known_train/get"].fetchrow(conn, name=name)
        if row is None:
            return None
        stated = {name: row[name] for name in STATED if row[name] is not None}
        schema = msgspec.json.decode(row["input_schema"])
        return KnownTrain(row["name"], row["group"], schema, row["priority"], stated, tuple(row["aliases"]))

    async def names(self, conn: Connection) -> list[str]:
        return [row["name"] for row in await self._sql["known_train/names"].fetch(conn)]
