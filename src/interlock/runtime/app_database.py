"""The database of an app: the one that was named, else an embedded server that this process uses."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

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
        found = self._database
        if found is None or self._inherits_embedded():
            found = await asyncio.to_thread(self._open)
        return found

    async def aclose(self) -> None:
        # Let go of first: whoever opens it meanwhile, in whatever thread, must not get what is being closed.
        database, self._database = self._database, None
        embedded, self._embedded = self._embedded, None
        try:
            if database is not None:
                await database.close()
        finally:
            if embedded is not None and self._pid == os.getpid():
                await asyncio.to_thread(embedded.stop)

    def _inherits_embedded(self) -> bool:
        """Whether this is a forked child, which has to become a user of the embedded server itself."""
        return self._embedded is not None and self._pid != os.getpid()

    def _open(self) -> Database:
        # One lock per process: a child may be forked while a thread of its parent is opening.
        with self._opening.setdefault(os.getpid(), threading.Lock()):
            found = self._database
            if found is None or self._inherits_embedded():
                settings, embedded = self._settings(), None
                if (dsn := settings.dsn) is None:
                    embedded, dsn = self._start_embedded()
                self._pid = os.getpid()
                self._embedded, self._database = embedded, (found := Database(dsn, settings))
            return found

    def _start_embedded(self) -> tuple[EmbeddedServer, str]:
        from interlock.embedded import EmbeddedServer  # noqa: PLC0415  only those who named no database need it

        began = time.monotonic()
        embedded = EmbeddedServer(embedded_folder())
        dsn = embedded.start()
        took = timedelta(seconds=time.monotonic() - began)
        port = int(dsn.rsplit(":", 1)[1].split("/")[0])
        self._emit(EmbeddedStarted(folder=str(embedded.folder), port=port, took=took))
        return embedded, dsn


def embedded_folder() -> Path | None:
    """Where the embedded database of this process lies; None: in the folder that is derived from the current one."""
    chosen = os.environ.get("INTERLOCK_EMBEDDED_FOLDER")
    return Path(chosen) if chosen else None
