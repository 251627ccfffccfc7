"""The keeper: one thread, with its own event loop and connection, that keeps this server's lease.

The lease is one row that only its owner and the recovery tick touch. It is renewed away from the event loop of the
work, so a body that blocks that loop for minutes loses nothing. A server that was marked lost hears of it with its next
heartbeat: it says so to those who hold something under the lease, and registers anew under a new id. While the database
is away the keeper only tries again; nothing is given up, because nobody else can judge the lease either.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.observe.events.server import (
    LeaseLostByServer,
    LeaseRenewalFailed,
    ServerDraining,
    ServerGone,
    ServerRegistered,
)
from interlock.runtime.loop import Alarm, Loop, LoopBackoff
from interlock.store.server import Servers

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.model.server import ServerProfile
    from interlock.observe.bus import Emit
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.connection import Connection
    from interlock.store.database import Database

LEAVING = 2.0  # seconds to say goodbye in; a server that cannot is found by its lease


class Keeper:
    """A component that registers the server, renews its lease, and takes it off the registry at the end."""

    name = "keeper"

    def __init__(self, database: Database, profile: ServerProfile, settings: RuntimeSettings, *, emit: Emit) -> None:
        self.server: UUID | None = None
        self.profile = profile
        self._database, self._settings, self._emit = database, settings, emit
        self._servers = Servers(database.sql)
        self._conn: Connection | None = None
        self._valid_until = 0.0
        self._failures = 0
        self._draining = False
        self._listeners: list[Callable[[UUID], None]] = []
        self._loop, self._ended = self._new_loop(), Alarm()
        self._thread: threading.Thread | None = None
        self._pid = 0

    @property
    def remaining(self) -> timedelta:
        """How much of the lease is left by this process's own clock."""
        return timedelta(seconds=max(self._valid_until - time.monotonic(), 0))

    def on_lost(self, listener: Callable[[UUID], None]) -> None:
        """Call this, from the keeper's thread, with the id whose lease was lost."""
        self._listeners.append(listener)

    def lives_here(self) -> bool:
        """False in a child that inherited the keeper through a fork: the thread stayed behind."""
        return self._pid == os.getpid() and self._thread is not None and self._thread.is_alive()

    async def start(self) -> None:
        """Returns once the server is registered; raises what prevented it, and holds nothing then."""
        self._loop, self._ended, self._pid = self._new_loop(), Alarm(), os.getpid()
        try:
            await asyncio.to_thread(self._begin)
        except asyncio.CancelledError:
            self._loop.stop()  # the thread may register all the same, and then leaves at once
            raise

    async def run(self) -> None:
        await self._ended.wait()

    def stop(self) -> None:
        self._loop.stop()

    def _begin(self) -> None:
        ready: _Ready = _Ready()
        self._thread = thread = threading.Thread(
            target=self._serve, args=(ready,), name="interlock-keeper", daemon=True
        )
        thread.start()
        try:
            ready.wait()
        except BaseException:
            thread.join()
            raise

    def _new_loop(self) -> Loop:
        backoff = LoopBackoff(max=min(self._settings.heartbeat, timedelta(seconds=2)))
        return Loop(self.name, self.tick, emit=self._emit, first_delay=self._settings.heartbeat, backoff=backoff)

    def _serve(self, ready: _Ready) -> None:
        try:
            asyncio.run(self._keep(ready))
        finally:
            self._ended.set()

    async def _keep(self, ready: _Ready) -> None:
        try:
            await self._register()
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits in `start`
            await self._disconnect()
            ready.failed(error)
            return
        ready.set()
        try:
            await self._loop.run()
        finally:
            await self._leave()

    async def tick(self) -> timedelta:
        """One heartbeat."""
        try:
            await self._renew()
        except Exception as error:
            self._failures += 1
            if self.server is not None:
                self._emit(self._renewal_failed(self.server, error))
            await self._disconnect()
            raise
        self._failures = 0
        return self._settings.heartbeat

    async def drain(self) -> None:
        """From now on the registry says that this server takes no new work."""
        self._draining = True
        if self.server is None:
            return
        async with self._database.connection() as conn:
            if await self._servers.drain_if_alive(conn, self.server):
                self._emit(ServerDraining(server=self.server, name=self.profile.name))

    async def _renew(self) -> None:
        if self.server is None:
            await self._register()
            return
        conn, asked = await self._connected(), time.monotonic()
        async with self._in_time():
            remaining = await self._servers.renew_if_held(conn, self.server)
        if remaining is None:
            await self._lost(self.server)
        else:
            self._valid_until = asked + remaining.total_seconds()

    async def _lost(self, server: UUID) -> None:
        self._emit(LeaseLostByServer(server=server, name=self.profile.name))
        self.server, self._valid_until = None, 0.0
        for listener in self._listeners:
            listener(server)
        await self._register()

    async def _register(self) -> None:
        asked, server = time.monotonic(), uuid4()
        conn = await self._connected()
        async with self._in_time():
            remaining = await self._servers.register(conn, server, self.profile, self._settings.lease)
        self.server, self._valid_until = server, asked + remaining.total_seconds()
        self._emit(ServerRegistered(server=server, name=self.profile.name))
        if self._draining:
            await self._servers.drain_if_alive(conn, server)

    async def _leave(self) -> None:
        with suppress(Exception):
            async with asyncio.timeout(LEAVING):
                conn = await self._connected()
                if self.server is not None:
                    await self._servers.drain_if_alive(conn, self.server)
                    if await self._servers.leave_if_draining(conn, self.server):
                        self._emit(ServerGone(server=self.server, name=self.profile.name))
        self.server, self._valid_until = None, 0.0
        await self._disconnect()

    async def _connected(self) -> Connection:
        if self._conn is None or self._conn.is_closed():
            self._conn = await self._database.connect("keeper")
        return self._conn

    def _in_time(self) -> asyncio.Timeout:
        """A line that went dead says nothing: an answer that takes longer than a heartbeat is none."""
        return asyncio.timeout(self._settings.heartbeat.total_seconds())

    async def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close(timeout=1)

    def _renewal_failed(self, server: UUID, error: Exception) -> LeaseRenewalFailed:
        return LeaseRenewalFailed(
            server=server,
            name=self.profile.name,
            remaining=self.remaining,
            error=error,
            consecutive=self._failures,
        )


class _Ready:
    """What `start` waits for: the registration, or the error that prevented it."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: BaseException | None = None

    def set(self) -> None:
        self._done.set()

    def failed(self, error: BaseException) -> None:
        self._error = error
        self._done.set()

    def wait(self) -> None:
        self._done.wait()
        if self._error is not None:
            raise self._error
