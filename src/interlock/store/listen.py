"""The one connection that listens for notices and wakes the loops of this process.

Notices carry latency, polling carries the guarantee: whatever happens here, no work is lost. The hub is a `tick` like
every other component: it connects, proves with a notice to itself that notices arrive at all (behind a transaction
pooler they do not), and from then on checks that the connection still answers. A fresh connection wakes everybody,
because what was sent in between is gone.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from interlock.observe.events.store import ListenLost, ListenReady, PollingFallback
from interlock.store.connection import set_aside
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
        self._pid = os.getpid()
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
        try:
            return await self._check()
        except Exception as error:
            self._lost(error)
            await self.close()
            raise

    async def close(self) -> None:
        self._disown_inherited()
        conn, self._conn, self.listening = self._conn, None, False
        if conn is not None and not conn.is_closed():
            conn.remove_termination_listener(self._terminated)
            with suppress(Exception):
                await conn.close(timeout=1)

    async def _check(self) -> timedelta:
        self._disown_inherited()
        if self._conn is None or self._conn.is_closed():
            await self._connect()
        else:
            await self._conn.execute("select 1", timeout=self._probe_timeout)
        return CHECK_INTERVAL if self.listening else await self._probe()

    def _disown_inherited(self) -> None:
        """In a forked child: the parent goes on listening on its connection, the child opens its own."""
        if self._pid != os.getpid():
            set_aside(self._conn)
            self._conn, self.listening, self._pid = None, False, os.getpid()

    async def _connect(self) -> None:
        await self.close()
        conn = self._conn = await self._database.connect("listener")
        conn.add_termination_listener(self._terminated)
        async with asyncio.timeout(self._probe_timeout):
            await conn.add_listener(self._channel, self._received)

    async def _probe(self) -> timedelta:
        if not await self._hears_itself():
            self._emit(PollingFallback(reason="a notice to ourselves did not arrive; is this a transaction pooler?"))
            return PROBE_AGAIN
        self.listening = True
        self._emit(ListenReady())
        self._wake_everybody()
        return CHECK_INTERVAL

    async def _hears_itself(self) -> bool:
        """Whether a notice that this process sends over another connection comes back."""
        token, arrived = uuid4().hex, asyncio.Event()
        self._probes[token] = arrived
        try:
            await self._send_probe(token)
            with suppress(TimeoutError):
                await asyncio.wait_for(arrived.wait(), self._probe_timeout)
        finally:
            del self._probes[token]
        if self._conn is None or self._conn.is_closed():
            raise ConnectionError("the connection ended")
        return arrived.is_set()

    async def _send_probe(self, token: str) -> None:
        """Over a connection made for it: after a silent cut those of the pool may be dead without knowing it."""
        conn = await self._database.connect("probe")
        try:
            async with asyncio.timeout(self._probe_timeout):
                await notify_in(conn, self._database, [f"probe:{token}"])
        finally:
            await conn.close(timeout=1)

    def _received(self, _conn: object, _pid: int, _channel: str, payload: Any) -> None:
        topic, _, detail = str(payload).partition(":")
        if topic == "probe":
            if detail in self._probes:
                self._probes[detail].set()
            return
        for handler in tuple(self._subscribers.get(topic, ())):
            handler(detail)

    def _terminated(self, _conn: object) -> None:
        self._lost(ConnectionError("the connection ended"))
        self._wake()

    def _lost(self, error: Exception) -> None:
        if self.listening:
            self.listening = False
            self._emit(ListenLost(error=error, consecutive=1))

    def _wake_everybody(self) -> None:
        for handlers in self._subscribers.values():
            for handler in tuple(handlers):
                handler("")
