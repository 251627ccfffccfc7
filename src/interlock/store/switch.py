"""What operators switch: manifests on and off, trains paused and resumed, and a run of a manifest out of turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.errors import UnknownGroup
from interlock.store.execution import Executions

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from interlock.model.execution import Policy
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog

GROUP_FIELDS = ("enabled", "priority", "max_active_jobs")


class Found(NamedTuple):
    manifest_id: int | None
    group_id: int | None


class Switches:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql
        self._executions = Executions(sql)

    async def find(self, conn: Connection, *, external_id: str | None = None, group: str | None = None) -> Found:
        row = await self._sql["switch/find"].fetchrow(conn, external_id=external_id, group=group)
        return Found(*row) if row is not None else Found(None, None)

    async def enable_if_disabled(self, conn: Connection, external_id: str, *, now: datetime | None) -> bool:
        """Answers whether it was off; its marker comes back if nothing else blocks it."""
        manifest_id = await self._sql["switch/enable"].fetchval(conn, external_id=external_id, now=now)
        if manifest_id is not None:
            await self._executions.unblock(conn, [manifest_id], now=now)
        return manifest_id is not None

    async def disable_if_enabled(self, conn: Connection, external_id: str, *, now: datetime | None) -> bool:
        """Answers whether it was on. What is queued or runs already is left alone."""
        return await self._sql["switch/disable"].fetchval(conn, external_id=external_id, now=now) is not None

    async def train_of(self, conn: Connection, external_id: str) -> str | None:
        train: str | None = await self._sql["switch/train_of"].fetchval(conn, external_id=external_id)
        return train

    async def trigger(
        self,
        conn: Connection,
        external_id: str,
        *,
        delay: timedelta,
        priority: int | None,
        policy: Policy,
        now: datetime | None,
    ) -> int | None:
        """Queue a manual run; answers its entry, or None if there is no such manifest."""
        entry: int | None = await self._sql["switch/trigger"].fetchval(
            conn, external_id=external_id, delay=delay, priority=priority, now=now, **policy._asdict()
        )
        return entry

    async def pause_if_running(self, conn: Connection, train: str, *, actor: str | None) -> bool:
        return await self._sql["switch/pause"].fetchval(conn, train=train, actor=actor) is not None

    async def resume_if_paused(self, conn: Connection, train: str) -> bool:
        return await self._sql["switch/resume"].fetchval(conn, train=train) is not None

    async def set_group(
        self,
        conn: Connection,
        name: str,
        *,
        sets_cap: bool,
        max_active_jobs: int | None,
        priority: int | None,
        enabled: bool | None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Change what is given; answers the settings before and after."""
        row = await self._sql["switch/set_group"].fetchrow(
            conn,
            name=name,
            sets_cap=sets_cap,
            max_active_jobs=max_active_jobs,
            priority=priority,
            enabled=enabled,
        )
        if row is None:
            raise UnknownGroup(name=name)
        return {field: row[f"was_{field}"] for field in GROUP_FIELDS}, {field: row[field] for field in GROUP_FIELDS}
