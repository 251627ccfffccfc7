"""A small fleet on a database of its own: servers register, keep their leases, one is killed, the others notice."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.demo_world import open_world
from interlock.cli.options import json_option, option
from interlock.cli.output import show_json
from interlock.model.lifecycle import ServerState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.app import Interlock
    from interlock.cli.demo_world import Fleet
    from interlock.model.server import ServerRow

SERVERS = ("server-1", "server-2", "server-3")
VICTIM = "server-2"
LOOK = 0.5
KILL_AFTER = 5.0


@click.command(name="demo")
@option("--seconds", type=click.FloatRange(min=1, max=86400), help="End by itself after the servers ran for so long.")
@option("--keep", is_flag=True, help="Leave the database folder for a later look.")
@json_option
def command(*, seconds: float | None, keep: bool, as_json: bool) -> None:
    """Watch servers come, die and be noticed, on a database of its own; Ctrl-C ends it with a summary."""
    summary = asyncio.run(Demo(seconds, quiet=as_json).watch(keep=keep))
    if as_json and summary is not None:
        show_json(summary)


class Demo:
    def __init__(self, seconds: float | None, *, quiet: bool) -> None:
        self._life, self._quiet = seconds or float("inf"), quiet
        self._began = self._ready = time.monotonic()
        self._running, self._over = False, asyncio.Event()
        self._seen: dict[str, ServerState] = {}
        self._victim_fell = self._victim_replaced = False

    def say(self, text: str) -> None:
        if not self._quiet:
            click.echo(f"{time.monotonic() - self._began:5.1f} s  {text}")

    async def watch(self, *, keep: bool) -> dict[str, Any] | None:
        """The summary, or None when it was interrupted before anything ran."""
        with self._ended_by_signals():
            try:
                async with open_world(self.say, keep=keep) as (app, fleet):
                    self._running = True
                    await self._run(app, fleet)
                    summary = await self._summary(app)
                    said = ", ".join(f"{name} {value}" for name, value in summary.items())
                    self.say(f"summary, from the database: {said}")
                    return summary
            except asyncio.CancelledError:
                return None

    @contextmanager
    def _ended_by_signals(self) -> Iterator[None]:
        """SIGTERM ends the demo as Ctrl-C does: with its cleanup, and with a summary if there is something to say."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end() -> None:
            if self._running:
                self._over.set()
            elif task is not None:
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def _run(self, app: Interlock, fleet: Fleet) -> None:
        self.say("the schema is applied; starting three servers")
        self._ready = time.monotonic()
        for name in SERVERS:
            fleet.start(name)
        try:
            while self._shown() < self._life and not self._over.is_set():
                fleet.check()
                self._show(await app.aservers(all=True))
                self._play(fleet)
                await self._pause()
        finally:
            await asyncio.to_thread(fleet.end)

    async def _pause(self) -> None:
        left = max(0.0, min(LOOK, self._life - self._shown()))
        try:
            await asyncio.wait_for(self._over.wait(), left)
        except TimeoutError:
            return

    def _play(self, fleet: Fleet) -> None:
        """One server dies without a goodbye, and a new one takes its name when the others have noticed."""
        if (
            not self._victim_fell
            and self._shown() > min(self._life / 3, KILL_AFTER)
            and len(self._seen) >= len(SERVERS)
        ):
            self.say(f"kill -9 {VICTIM}: no goodbye, its lease has to run out")
            fleet.kill(VICTIM)
            self._victim_fell = True
        if self._victim_fell and not self._victim_replaced and ServerState.LOST in self._seen.values():
            self.say(f"starting {VICTIM} anew")
            fleet.start(VICTIM)
            self._victim_replaced = True

    def _show(self, rows: list[ServerRow]) -> None:
        for row in rows:
            key = str(row.id)
            if self._seen.get(key) is not row.state:
                self._seen[key] = row.state
                self.say(f"{row.profile.name} ({key[:8]}) is {row.state}")
        live = [row for row in rows if row.state is ServerState.ALIVE]
        if live and int(time.monotonic() / LOOK) % 4 == 0:
            beats = ", ".join(f"{row.profile.name} {row.heartbeat_age.total_seconds():.1f} s ago" for row in live)
            self.say(f"heartbeats: {beats}")

    async def _summary(self, app: Interlock) -> dict[str, Any]:
        rows = await app.aservers(all=True)
        self._show(rows)
        lost = [row for row in rows if row.state is ServerState.LOST]
        noticed = [(row.ended_at - row.renewed_at).total_seconds() for row in lost if row.ended_at]
        return {
            "servers registered": len(rows),
            "left in order": sum(row.state is ServerState.GONE for row in rows),
            "lost": len(lost),
            "seconds from last heartbeat to notice": round(max(noticed), 1) if noticed else None,
        }

    def _shown(self) -> float:
        """Seconds since there was something to see: a slow start of the database takes nothing from the show."""
        return time.monotonic() - self._ready
