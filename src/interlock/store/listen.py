"""The one connection that listens for notices and wakes the loops of this process.

Notices carry latency, polling carries the guarantee: whatever happens here, no work is lost. The hub is a `tick` like
every other component: it connects, proves with a notice to itself that notices arrive at all (behind a transaction
pooler they do not), and from then on checks that the connection still answers. A fresh connection wakes everybody,
because what was sent in between is gone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from interlock.observe.events.store import ListenLost, ListenReady, PollingFallback
from interlock.store.notify import channel_of, notify_in

if TYPE_CHECKING:
    from collections.abc import Callable

    import asyncpg

    from interlock.observe.bus import Emit
    from interlock.store.connection import Record
    from interlock.store.database import Database

CHECK_INTERVAL = timedelta(seconds=5)
PROBE_AGAIN = timedelta(seconds=60)
PROBE_TIMEOUT = timedelta(seconds=2)


class NoticeHub:
    """Hands each notice `topic:detail` to those who subscribed to the topic."""

    name = "notices"

    def __init__(self, database: Database, *, emit: Emit, probe_timeout: timedelta = PROBE_TIMEOUT) -> None:
        self.listening = False
        self._database, self._emit = database, emit
        self._channel = channel_of(database.settings.schema)
        self._probe_timeout = probe_timeout.total_seconds()
        self._conn: asyncpg.Connection[Record] | None = None
        self._subscribers: dict[str, list[Callable[[str], None]]] = {}
        self._probes: dict[str, asyncio.Event] = {}
        self._wake: Callable[[], None] = lambda: None

    def subscribe(self, topic: str, handler: Callable[[str], None]) -> Callable[[], None]:
        """Call the handler with the detail of each notice, and with "" after a gap; call the answer to end that."""
        self._subscribers.setdefault(topic, []).append(handler)
        return lambda: self._subscribers[topic].remove(handler)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """How the loop that runs this tick is woken when the connection breaks."""
        self._wake = wake

    async def tick(self) -> timedelta:
        if self._conn is None or self._conn.is_closed():
            return await self._connect()
        try:
            await self._conn.execute("select 1", timeout=self._probe_timeout)
        except Exception:
            await self.close()
            raise
        return CHECK_INTERVAL if self.listening else await self._probe()

    async def close(self) -> None:
        conn, self._conn, self.listening = self._conn, None, False
        if conn is not None and not conn.is_closed():
            conn.remove_termination_listener(self._terminated)
            with suppress(Exception):
                await conn.close(timeout=1)

    async def _connect(self) -> timedelta:
        await self.close()
        conn = await self._database.connect("listener")
        self._conn = conn
        conn.add_termination_listener(self._terminated)
        await conn.add_listener(self._channel, self._received)
        return await self._probe()

    async def _probe(self) -> timedelta:
        """Whether a notice that this process sends over another connection comes back."""
        token, arrived = uuid4().hex, asyncio.Event()
        self._probes[token] = arrived
        try:
            async with self._database.connection() as conn:
                await notify_in(conn, self._database, [f"probe:{token}"])
            await asyncio.wait_for(arrived.wait(), self._probe_timeout)
        except TimeoutError:
            self._emit(PollingFallback(reason="a notice to ourselves did not arrive; is this a transaction pooler?"))
            return PROBE_AGAIN
        finally:
            del self._probes[token]
        self.listening = True
        self._emit(ListenReady())
        self._wake_everybody()
        return CHECK_INTERVAL

    def _received(self, _conn: object, _pid: int, _channel: str, payload: Any) -> None:
        topic, _, detail = str(payload).partition(":")
        if topic == "probe":
            if detail in self._probes:
                self._probes[detail].set()
            return
        for handler in tuple(self._subscribers.get(topic, ())):
            handler(detail)

    def _terminated(self, _conn: object) -> None:
        if self.listening:
            self.listening = False
            self._emit(ListenLost(error=ConnectionError("the connection ended"), consecutive=1))
        self._wake()

    def _wake_everybody(self) -> None:
        for handlers in self._subscribers.values():
            for handler in tuple(handlers):
                handler("")
