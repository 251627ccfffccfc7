"""Notices to the loops of other servers: coalesced per process, and the last one always sent.

NOTIFY takes a lock over the whole cluster when its transaction commits, so a process sends at most one round per
window. What comes up within a window goes out at its end: dropping it because one went out just before would lose the
wake-up of a row that was not committed yet.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING

from interlock.observe.events.store import NoticeFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.observe.bus import Emit
    from interlock.store.connection import Connection
    from interlock.store.database import Database

WINDOW = 0.005


def channel_of(schema: str) -> str:
    return f"interlock_{schema}"


async def notify_in(conn: Connection, database: Database, payloads: Iterable[str]) -> None:
    """Send with the commit of this transaction; never suppressed."""
    await database.sql["notice/send"].execute(
        conn, channel=channel_of(database.settings.schema), payloads=list(payloads)
    )


class Notifier:
    """Sends after the commit, outside any transaction."""

    def __init__(self, database: Database, *, emit: Emit, window: float = WINDOW) -> None:
        self._database, self._emit, self._window = database, emit, window
        self._waiting: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def notify(self, payload: str) -> None:
        """Call only once the rows are committed."""
        self._waiting[payload] = None
        if not self._is_sending():
            # Not in the context of the train that enqueued first: others share the task.
            self._sending = asyncio.create_task(self._send_until_quiet(), name="notices", context=Context())

    async def close(self) -> None:
        """What waits is sent first."""
        if self._sending is not None and self._is_sending():
            await self._sending

    def _is_sending(self) -> bool:
        """Not so when the sending task stayed behind in another event loop, or in the parent of this process."""
        sending = self._sending
        return sending is not None and not sending.done() and sending.get_loop() is asyncio.get_running_loop()

    async def _send_until_quiet(self) -> None:
        while self._waiting:
            payloads, self._waiting = self._waiting, {}
            await self._send(payloads)
            await asyncio.sleep(self._window)

    async def _send(self, payloads: Iterable[str]) -> None:
        try:
            async with self._database.connection() as conn:
                await notify_in(conn, self._database, payloads)
        except Exception as error:  # noqa: BLE001  a lost notice costs latency only: polling finds the row
            self._emit(NoticeFailed(error=str(error)))
