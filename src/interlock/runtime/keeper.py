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
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.observe.events.server import LeaseRenewalFailed
from interlock.runtime.lease import LEAVING, ServerLease
from interlock.runtime.loop import Alarm, Loop, LoopBackoff

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from interlock.model.server import ServerProfile
    from interlock.observe.bus import Emit
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.database import Database


class Keeper:
    """A component that registers the server, renews its lease, and takes it off the registry at the end."""

    name = "keeper"

    def __init__(self, database: Database, profile: ServerProfile, settings: RuntimeSettings, *, emit: Emit) -> None:
        self.profile = profile
        self._database, self._settings, self._emit = database, settings, emit
        self._lease = ServerLease(database, profile, settings, emit=emit)
        self._failures = 0
        self._loop, self._ended = self._new_loop(), Alarm()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    @property
    def server(self) -> UUID | None:
        """The id under which this process is registered now."""
        return self._lease.server

    @property
    def remaining(self) -> timedelta:
        """How much of the lease is left by this process's own clock."""
        return self._lease.remaining

    def on_lost(self, listener: Callable[[UUID], None]) -> None:
        """Call this, from the keeper's thread, with the id whose lease was lost."""
        self._lease.on_lost(listener)

    def lives_here(self) -> bool:
        """False in a child that inherited the keeper through a fork: the thread stayed behind."""
        return self._pid == os.getpid() and self._thread is not None and self._thread.is_alive()

    async def start(self) -> None:
        """Returns once the server is registered; raises what prevented it, and holds nothing then."""
        self._lease.disown_inherited()
        self._loop, self._ended, self._pid = self._new_loop(), Alarm(), os.getpid()
        ready = _Ready()
        self._thread = threading.Thread(target=self._serve, args=(ready,), name="interlock-keeper", daemon=True)
        self._thread.start()
        try:
            await ready.wait()
        except BaseException:
            # The thread may register all the same, and then leaves at once: not without it, or the row looks alive.
            self._loop.stop()
            await self._ended.wait()
            self._thread.join()
            raise

    async def run(self) -> None:
        try:
            await self._ended.wait()
        except asyncio.CancelledError:
            # The deadline of all has passed. A process that ended now would look lost, and not gone.
            self.stop()
            await self._ended.wait(timedelta(seconds=LEAVING))
            raise

    def stop(self) -> None:
        if self._pid == os.getpid():
            self._loop.stop()

    async def tick(self) -> timedelta:
        """One heartbeat."""
        try:
            await self._lease.renew()
        except Exception as error:
            self._failures += 1
            if self.server is not None:
                self._emit(self._renewal_failed(self.server, error))
            await self._lease.disconnect()
            raise
        self._failures = 0
        return self._settings.heartbeat

    def draining(self) -> None:
        """From now on this server takes no new work; the registry says so with a heartbeat that follows at once."""
        if self._pid == os.getpid():
            self._lease.draining = True
            self._loop.wake()

    def _new_loop(self) -> Loop:
        backoff = LoopBackoff(max=min(self._settings.heartbeat, timedelta(seconds=2)))
        return Loop(self.name, self.tick, emit=self._emit, first_delay=self._settings.heartbeat, backoff=backoff)

    def _serve(self, ready: _Ready) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._keep(ready))
        except OSError as error:  # no event loop: this process may open no further file
            ready.failed(error)
        finally:
            self._ended.set()

    async def _keep(self, ready: _Ready) -> None:
        try:
            await self._lease.register()
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits in `start`
            await self._lease.disconnect()
            ready.failed(error)
            return
        ready.set()
        try:
            await self._loop.run()
        finally:
            await self._lease.leave()

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
        self._done = Alarm()
        self._error: BaseException | None = None

    def set(self) -> None:
        self._done.set()

    def failed(self, error: BaseException) -> None:
        self._error = error
        self._done.set()

    async def wait(self) -> None:
        await self._done.wait()
        if self._error is not None:
            raise self._error
