"""What the demo runs on: a PostgreSQL in a folder of its own, which goes when the demo ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.demo.fleet import Fleet
from interlock.cli.demo.world import build
from interlock.embedded.failures import explained
from interlock.settings import known_options, variable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from interlock.app import Interlock

STOPPED_WITHIN = 10.0


@asynccontextmanager
async def open_place(say: Callable[[str], None], *, keep: bool) -> AsyncGenerator[tuple[Interlock, Fleet], None]:
    """A migrated database that nothing else uses, and a fleet without servers yet."""
    from interlock.embedded import EmbeddedServer, interlock_home

    folder = _new_folder(interlock_home())
    server, app = EmbeddedServer(folder / "pg"), None
    _forget_settings(folder)
    try:
        say("starting a PostgreSQL of our own ...")
        dsn = await asyncio.to_thread(server.start)
        app = build(dsn)
        await app.aapply_schema()
        yield app, Fleet(dsn, folder)
    finally:
        if app is not None:
            await app.aclose()
        await asyncio.to_thread(_clean_up, server.stop, folder, keep=keep)
        if keep:
            say(f"the database stays in {folder}")


def _new_folder(home: Path) -> Path:
    with explained(home):
        home.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="demo-", dir=home))
        folder.chmod(0o755)  # PostgreSQL may run under another account, which has to get in
        return folder


def _forget_settings(folder: Path) -> None:
    """The demo shows Interlock, not the project that it happens to be started in."""
    for name in (*map(variable, known_options()), variable("polling_interval"), variable("app"), variable("roles")):
        os.environ.pop(name, None)
    os.chdir(folder)


def _clean_up(stop: Callable[[], None], folder: Path, *, keep: bool) -> None:
    stop()
    os.chdir("/")
    deadline = time.monotonic() + STOPPED_WITHIN
    while (folder / "pg/data/postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
