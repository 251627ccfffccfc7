"""The database of an app: the one that was named, else an embedded server that this process uses."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from interlock.errors import NotOpen
from interlock.observe.events.store import EmbeddedStarted
from interlock.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.embedded import EmbeddedServer
    from interlock.observe.bus import Emit
    from interlock.store.settings import StoreSettings


class AppDatabase:
    """Opened by whoever needs it first, in whatever thread; after a close it may be opened again."""

    def __init__(self, settings: Callable[[], StoreSettings], *, emit: Emit) -> None:
        self._settings, self._emit = settings, emit
        self._embedded: EmbeddedServer | None = None
        self._database: Database | None = None
        self._pid = os.getpid()
        self._opening: dict[int, threading.Lock] = {}

    @property
    def is_embedded(self) -> bool:
        """Whether no other was named."""
        return self._settings().dsn is None

    @property
    def dsn(self) -> str:
        """Its address; an embedded one has none while it is not open."""
        named = self._settings().dsn
        if named is not None:
            return named
        if self._database is None:
            raise NotOpen
        return self._database.dsn

    async def aget(self) -> Database:
        if self._database is None or self._inherits_embedded():
            await asyncio.to_thread(self._open)
        return cast("Database", self._database)

    async def aclose(self) -> None:
        if self._database is not None:
            await self._database.close()
        if self._embedded is not None and self._pid == os.getpid():
            await asyncio.to_thread(self._embedded.stop)
        self._embedded = self._database = None

    def _inherits_embedded(self) -> bool:
        """Whether this is a forked child, which has to become a user of the embedded server itself."""
        return self._embedded is not None and self._pid != os.getpid()

    def _open(self) -> None:
        # One lock per process: a child may be forked while a thread of its parent is opening.
        with self._opening.setdefault(os.getpid(), threading.Lock()):
            if self._database is None or self._inherits_embedded():
                self._pid = os.getpid()
                settings = self._settings()
                self._database = Database(settings.dsn or self._start_embedded(), settings)

    def _start_embedded(self) -> str:
        from interlock.embedded import EmbeddedServer  # noqa: PLC0415  only those who named no database need it

        began = time.monotonic()
        self._embedded = EmbeddedServer(embedded_folder())
        dsn = self._embedded.start()
        took = timedelta(seconds=time.monotonic() - began)
        port = int(dsn.rsplit(":", 1)[1].split("/")[0])
        self._emit(EmbeddedStarted(folder=str(self._embedded.folder), port=port, took=took))
        return dsn


def embedded_folder() -> Path | None:
    """Where the embedded database of this process lies; None: in the folder that is derived from the current one."""
    chosen = os.environ.get("INTERLOCK_EMBEDDED_FOLDER")
    return Path(chosen) if chosen else None
