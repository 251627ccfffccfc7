"""Notices to the loops of other servers: coalesced per process, and the last one always sent.

NOTIFY takes a lock over the whole cluster when its transaction commits, so a process sends about one round per window.
What comes up within a window goes out at its end: dropping it because one went out just before would lose the wake-up
of a row that was not committed yet. A statement that begins in the second half of a window, or in a quiet time, carries
its notice in its own transaction, which saves a commit.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from contextvars import Context
from math import inf
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
    """Sends after the commit, outside any transaction, what no statement carried with its own commit."""

    def __init__(self, database: Database, *, emit: Emit, window: float = WINDOW) -> None:
        self._database, self._emit, self._window = database, emit, window
        self._waiting: dict[str, int] = {}
        self._count = 0
        self._sent_at = -inf
        self._sending: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def notify(self, payload: str) -> None:
        """Call only once the rows are committed."""
        self._count += 1
        self._waiting[payload] = self._count
        if not self._is_sending():
            self._closing = asyncio.Event()
            # Not in the context of the train that enqueued first: others share the task.
            self._sending = asyncio.create_task(self._send_until_quiet(), name="notices", context=Context())

    def carry(self) -> int | None:
        """Whether a statement that begins now is to carry its notice itself; once it is committed, say so with
        `carried`. None: one went out so recently that this one has to wait with others, for `notify`.
        """
        now = time.monotonic()
        if now - self._sent_at < self._window / 2:
            return None
        self._sent_at = now
        return self._count

    def carried(self, payload: str, since: int) -> None:
        """It told of all that was committed when it began, and of nothing that came later."""
        if self._waiting.get(payload, since + 1) <= since:
            del self._waiting[payload]

    async def close(self) -> None:
        """What waits is sent first, and does not wait for the end of its window."""
        if self._sending is not None and self._is_sending():
            self._closing.set()
            await self._sending

    def _is_sending(self) -> bool:
        """Not so when the sending task stayed behind in another event loop, or in the parent of this process."""
        sending = self._sending
        return sending is not None and not sending.done() and sending.get_loop() is asyncio.get_running_loop()

    async def _send_until_quiet(self) -> None:
        while self._waiting:
            pause = self._sent_at + self._window - time.monotonic()
            if pause > 0 and not self._closing.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._closing.wait()
                continue
            payloads, self._waiting = self._waiting, {}
            self._sent_at = time.monotonic()
            await self._send(payloads)

    async def _send(self, payloads: Iterable[str]) -> None:
        try:
            async with self._database.connection() as conn:
                await notify_in(conn, self._database, payloads)
        except Exception as error:  # noqa: BLE001  a lost notice costs latency only: polling finds the row
            self._emit(NoticeFailed(error=str(error)))
