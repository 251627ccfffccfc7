"""The `audit` table: who did what to which thing, and why. Rows are never changed; retention takes the oldest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interlock.model.act import Change
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Audit:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    async def write(
        self, conn: Connection, changes: Sequence[Change], *, actor: str, via: str, note: str | None
    ) -> None:
        """Write what one command changed, in the transaction of that command."""
        await self._sql["audit/write"].execute(
            conn,
            actor=actor,
            via=via,
            note=note,
            actions=[change.action for change in changes],
            target_kinds=[change.target_kind for change in changes],
            targets=[change.target for change in changes],
            befores=[_json(change.before) for change in changes],
            afters=[_json(change.after) for change in changes],
        )


def _json(fields: Mapping[str, Any] | None) -> str | None:
    return None if fields is None else msgspec.json.encode(fields).decode()
