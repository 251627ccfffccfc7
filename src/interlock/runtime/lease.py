"""The lease of one server over one connection of its own: taken, renewed, lost, taken anew, given back.

All of it happens on the event loop of the keeper's thread; only `server` and `remaining` are read from elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.errors import DatabaseUnavailable
from interlock.observe.events.server import LeaseLostByServer, ServerDraining, ServerGone, ServerRegistered
from interlock.store.connection import set_aside
from interlock.store.server import Servers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from uuid import UUID

    from interlock.model.server import ServerProfile
    from interlock.observe.bus import Emit
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.connection import Connection
    from interlock.store.database import Database

LEAVING = 2.0  # seconds to say goodbye in; a server that cannot is found by its lease


class ServerLease:
    """Who this server is in the registry, and until when it may believe so."""

    def __init__(self, database: Database, profile: ServerProfile, settings: RuntimeSettings, *, emit: Emit) -> None:
        self.servers = Servers(database.sql)
        self.draining = False
        self._said_draining: UUID | None = None
        self._database, self._profile, self._settings, self._emit = database, profile, settings, emit
        self._server: UUID | None = None
        self._valid_until = 0.0
        self._conn: Connection | None = None
        self._listeners: list[Callable[[UUID], None]] = []
        self._pid = os.getpid()

    @property
    def server(self) -> UUID | None:
        """The id under which this process is registered; none in a child that inherited the lease through a fork."""
        return self._server if self._pid == os.getpid() else None

    @property
    def remaining(self) -> timedelta:
        """How much of the lease is left by this process's own clock."""
        if self.server is None:
            return timedelta(0)
        return timedelta(seconds=max(self._valid_until - time.monotonic(), 0))

    def on_lost(self, listener: Callable[[UUID], None]) -> None:
        self._listeners.append(listener)

    def disown_inherited(self) -> None:
        """In a forked child: the parent keeps its lease and its connection, the child will take its own."""
        if self._pid != os.getpid():
            set_aside(self._conn)
            self._conn, self._pid = None, os.getpid()
            self._forget()

    async def renew(self) -> None:
        """One heartbeat: the lease is held for its whole length again, under a new id if the old one was lost."""
        if self._server is None:
            await self.register()
            return
        conn, asked = await self._connected(), time.monotonic()
        async with self._in_time():
            remaining = await self.servers.renew_if_held(conn, self._server)
        if remaining is None:
            await self._lost(self._server)
        else:
            self._valid_until = asked + remaining.total_seconds()
            await self._say_if_draining(conn, self._server)

    async def register(self) -> None:
        """Enter the registry under an id that was never used before."""
        asked, server = time.monotonic(), uuid4()
        conn = await self._connected()
        try:
            async with self._in_time():
                remaining = await self.servers.register(conn, server, self._profile, self._settings.lease)
        except BaseException:
            await self._withdraw(server)
            raise
        self._server, self._valid_until = server, asked + remaining.total_seconds()
        self._emit(ServerRegistered(server=server, name=self._profile.name))
        await self._say_if_draining(conn, server)

    async def leave(self) -> None:
        """Give the lease back, if that can be done quickly."""
        server = self._server
        if server is not None and await self._say_goodbye(server):
            self._emit(ServerGone(server=server, name=self._profile.name))
        self._forget()
        await self.disconnect()

    async def disconnect(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            with suppress(Exception):
                await conn.close(timeout=1)

    async def _say_if_draining(self, conn: Connection, server: UUID) -> None:
        if not self.draining or self._said_draining == server:
            return
        async with self._in_time():
            drained = await self.servers.drain_if_alive(conn, server)
        self._said_draining = server
        if drained:
            self._emit(ServerDraining(server=server, name=self._profile.name))

    async def _lost(self, server: UUID) -> None:
        self._forget()
        self._emit(LeaseLostByServer(server=server, name=self._profile.name))
        for listener in self._listeners:
            listener(server)
        await self.register()

    async def _withdraw(self, server: UUID) -> None:
        """The answer is missing, the row may be there all the same, and nobody would renew it."""
        await self.disconnect()
        await self._say_goodbye(server)

    async def _say_goodbye(self, server: UUID) -> bool:
        with suppress(Exception):
            async with asyncio.timeout(LEAVING):
                conn = await self._connected()
                await self.servers.drain_if_alive(conn, server)
                return await self.servers.leave_if_draining(conn, server)
        return False

    async def _connected(self) -> Connection:
        if self._conn is None or self._conn.is_closed():
            self._conn = await self._database.connect("keeper")
        return self._conn

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None, None]:
        """A line that went dead says nothing: an answer that takes longer than a heartbeat is none."""
        limit = self._settings.heartbeat.total_seconds()
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError as error:
            raise DatabaseUnavailable(where=self._database.where, reason=f"no answer within {limit:g} s") from error

    def _forget(self) -> None:
        self._server, self._valid_until = None, 0.0
