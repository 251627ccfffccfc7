"""A small fleet on a database of its own: servers register, keep their leases, one is killed, the others notice."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.app import Interlock
from interlock.cli.output import json_option, show_json
from interlock.model.lifecycle import ServerState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from interlock.model.server import ServerRow

SERVERS = 3
LEASES = {"INTERLOCK_LEASE": "3s", "INTERLOCK_HEARTBEAT": "1s", "INTERLOCK_RECOVERY_INTERVAL": "500ms"}
LOOK = 0.5


@click.command(name="demo")
@click.option("--seconds", type=click.FloatRange(min=1, max=86400), help="End by itself after so long.")
@click.option("--keep", is_flag=True, help="Leave the database folder for a later look.")
@json_option
def command(*, seconds: float | None, keep: bool, as_json: bool) -> None:
    """Watch servers come, die and be noticed, on a database of its own."""
    demo = Demo(seconds, quiet=as_json)
    try:
        summary = asyncio.run(demo.watch(keep=keep))
    except KeyboardInterrupt:
        sys.exit(0)
    if as_json:
        show_json(summary)
    else:
        demo.say("summary, from the database: " + ", ".join(f"{name} {value}" for name, value in summary.items()))


class Demo:
    def __init__(self, seconds: float | None, *, quiet: bool) -> None:
        self._seconds, self._quiet = seconds, quiet
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: dict[str, ServerState] = {}
        self._began = time.monotonic()
        self._killed: str | None = None

    def say(self, text: str) -> None:
        if not self._quiet:
            click.echo(f"{time.monotonic() - self._began:5.1f} s  {text}")

    async def watch(self, *, keep: bool) -> dict[str, Any]:
        with _interrupted_by_sigterm():
            async with self._world(keep=keep) as app:
                try:
                    await self._until_over(app)
                finally:
                    self._end_processes()
                return await self._summary(app)

    @asynccontextmanager
    async def _world(self, *, keep: bool) -> AsyncGenerator[Interlock, None]:
        from interlock.embedded import EmbeddedServer, interlock_home

        folder = _new_folder(interlock_home())
        server = EmbeddedServer(folder / "pg")
        try:
            self.say("starting a PostgreSQL of our own …")
            dsn = await asyncio.to_thread(server.start)
            app = Interlock(dsn, name="demo")
            await app.aapply_schema()
            self.say("the schema is applied; starting three servers")
            yield app
            await app.aclose()
        finally:
            server.stop()
            await self._clean_up(folder, keep=keep)

    async def _clean_up(self, folder: Path, *, keep: bool) -> None:
        if keep:
            self.say(f"the database stays in {folder}")
            return
        deadline = time.monotonic() + 10
        while (folder / "pg/data/postmaster.pid").exists() and time.monotonic() < deadline:  # noqa: ASYNC110  a file of another process
            await asyncio.sleep(0.05)
        shutil.rmtree(folder, ignore_errors=True)

    async def _until_over(self, app: Interlock) -> None:
        for number in range(1, SERVERS + 1):
            self._start(app, f"server-{number}")
        life = self._seconds or float("inf")
        kill_at = self._began + min(life / 3, 8)
        while time.monotonic() - self._began < life:
            self._show(await app.aservers(all=True))
            if self._killed is None and time.monotonic() > kill_at and len(self._seen) >= SERVERS:
                self._kill("server-2")
            self._replace_the_lost(app)
            await asyncio.sleep(LOOK)

    def _start(self, app: Interlock, name: str) -> None:
        environment = os.environ | LEASES | {"INTERLOCK_DSN": app.settings.store.dsn or "", "INTERLOCK_NAME": "demo"}
        command = [sys.executable, "-m", "interlock", "run", "--server-name", name]
        self._processes[name] = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _kill(self, name: str) -> None:
        self.say(f"kill -9 {name}: no goodbye, its lease has to run out")
        self._processes.pop(name).send_signal(signal.SIGKILL)
        self._killed = name

    def _replace_the_lost(self, app: Interlock) -> None:
        if self._killed in self._processes or ServerState.LOST not in self._seen.values():
            return
        self.say(f"starting {self._killed} anew")
        self._start(app, str(self._killed))

    def _show(self, rows: list[ServerRow]) -> None:
        for row in rows:
            key = str(row.id)
            if self._seen.get(key) is not row.state:
                self._seen[key] = row.state
                self.say(f"{row.profile.name} ({key[:8]}) is {row.state}")
        live = [row for row in rows if row.state is ServerState.ALIVE]
        if live and not self._quiet and int(time.monotonic() / LOOK) % 4 == 0:
            beats = ", ".join(f"{row.profile.name} {row.heartbeat_age.total_seconds():.1f} s ago" for row in live)
            self.say(f"heartbeats: {beats}")

    def _end_processes(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    async def _summary(self, app: Interlock) -> dict[str, Any]:
        rows = await app.aservers(all=True)
        self._show(rows)
        lost = [row for row in rows if row.state is ServerState.LOST and row.ended_at is not None]
        noticed = [(row.ended_at - row.renewed_at).total_seconds() for row in lost if row.ended_at]
        return {
            "servers registered": len(rows),
            "left in order": sum(row.state is ServerState.GONE for row in rows),
            "lost": len(lost),
            "seconds from last heartbeat to notice": round(max(noticed), 1) if noticed else None,
        }


def _new_folder(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=home))
    folder.chmod(0o755)  # PostgreSQL may run under another account, which has to get in
    return folder


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: with its cleanup."""
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
