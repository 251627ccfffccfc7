"""What the demo runs on: a PostgreSQL in a folder of its own, and servers that die with the demo, however it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlock.app import Interlock
from interlock.settings import known_options, variable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

LEASES = {"lease": "3s", "heartbeat": "1s", "recovery_interval": "500ms"}
ENDED_WITHIN = 5.0
STOPPED_WITHIN = 10.0


@asynccontextmanager
async def open_world(say: Callable[[str], None], *, keep: bool) -> AsyncGenerator[tuple[Interlock, Fleet], None]:
    """A migrated database that nothing else uses, and a fleet without servers yet."""
    from interlock.embedded import EmbeddedServer, interlock_home

    folder = _new_folder(interlock_home())
    server, app = EmbeddedServer(folder / "pg"), None
    _forget_settings(folder)
    try:
        say("starting a PostgreSQL of our own ...")
        dsn = await asyncio.to_thread(server.start)
        app = Interlock(dsn, name="demo")
        await app.aapply_schema()
        yield app, Fleet(dsn, folder)
    finally:
        if app is not None:
            await app.aclose()
        await asyncio.to_thread(_clean_up, server.stop, folder, keep=keep)
        if keep:
            say(f"the database stays in {folder}")


class Fleet:
    """The servers of the demo, each a process of its own."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn, self._folder = dsn, folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        chosen = LEASES | {"dsn": self._dsn, "name": "demo", "server_name": name}
        environment = os.environ | {variable(option): value for option, value in chosen.items()}
        with self._log(name).open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "interlock.cli.demo_server"],
                env=environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        _wait(process)

    def check(self) -> None:
        """Fail with its last words when a server ended that nobody killed."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = self._log(name).read_text("utf-8", "replace").strip().splitlines()
                raise click.ClickException(
                    f"{name} ended with {process.returncode}: {lines[-1] if lines else 'silent'}"
                )

    def end(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            _wait(process)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(ENDED_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _new_folder(home: Path) -> Path:
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
