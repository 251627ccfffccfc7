"""The `manifest_group` table, as declarations write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.store.declaration_row import batches

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from interlock.model.manifest import Said
    from interlock.store.connection import Connection
    from interlock.store.declaration_row import Columns
    from interlock.store.sql import Catalog


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as operators and code made it, and what each app last said of it."""

    id: int
    name: str
    enabled: bool
    priority: int
    max_active_jobs: int | None
    said: dict[str, Said]


class ManifestGroups:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def list(self, conn: Connection) -> dict[str, GroupRow]:
        """All groups, by name: there are few."""
        read = msgspec.json.Decoder(dict[str, dict[str, Any]]).decode
        rows = await self._sql["manifest_group/list"].fetch(conn)
        return {
            row["name"]: GroupRow(
                row["id"], row["name"], row["enabled"], row["priority"], row["max_active_jobs"], read(row["declared"])
            )
            for row in rows
        }

    async def ensure(self, conn: Connection, names: Collection[str]) -> dict[str, GroupRow]:
        """All groups, with these among them."""
        groups = await self.list(conn)
        missing = sorted(set(names) - groups.keys())
        if not missing:
            return groups
        await self._sql["manifest_group/insert"].execute(conn, names=missing)
        return await self.list(conn)

    async def change(self, conn: Connection, changes: Sequence[Columns]) -> None:
        for batch in batches(changes):
            await self._sql["manifest_group/change"].execute(conn, changes=batch)

    async def copy_priority(self, conn: Connection, priorities: Mapping[int, int]) -> None:
        """Give what is queued in these groups their new priority."""
        await self._sql["manifest_group/copy_priority"].execute(
            conn, ids=list(priorities), priorities=list(priorities.values())
        )

    async def forget(self, conn: Connection) -> Sequence[str]:
        """Delete the groups that nothing and nobody uses."""
        return [row["name"] for row in await self._sql["manifest_group/forget"].fetch(conn)]
