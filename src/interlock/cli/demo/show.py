"""The course of the demo: three servers start and work, one is killed while it works, a new one takes its name."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interlock.cli.demo.news import News
from interlock.cli.demo.place import open_place
from interlock.cli.demo.summary import DemoSummary
from interlock.cli.demo.world import LONGEST
from interlock.model.lifecycle import ServerState
from interlock.store.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interlock.app import Interlock
    from interlock.cli.demo.fleet import Fleet
    from interlock.cli.demo.view import View

SERVERS = ("server-1", "server-2", "server-3")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK = 0.25
KILL_AFTER = 5.0


class Show:
    def __init__(self, seconds: float | None, view: View) -> None:
        self._life, self._view, self._news = seconds or float("inf"), view, News()
        self._complete_at: float | None = None
        self._running, self._over = False, asyncio.Event()
        self._victim: str | None = None
        self._replaced = False
        self.folder: Path | None = None

    async def watch(self, *, keep: bool) -> DemoSummary | None:
        """The summary, or None when it was interrupted before anything ran."""
        with self._ended_by_signals():
            try:
                async with open_place(self._view.say, keep=keep) as (app, fleet):
                    self._running, self.folder = True, fleet.folder
                    await self._run(app, fleet)
                    return await self._summary(app)
            except asyncio.CancelledError:
                return None

    @contextmanager
    def _ended_by_signals(self) -> Iterator[None]:
        """SIGTERM, and a terminal that is closed, end the demo as Ctrl-C does: nothing of it stays behind."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end() -> None:
            if self._running:
                self._over.set()
            elif task is not None:
                task.cancel()

        for number in ENDING:
            loop.add_signal_handler(number, end)
        try:
            yield
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)

    async def _run(self, app: Interlock, fleet: Fleet) -> None:
        self._view.say("the schema is applied; starting three servers")
        for name in SERVERS:
            fleet.start(name)
        try:
            while self._left() > 0 and not self._over.is_set():
                fleet.check()
                await self._look(app)
                self._play(fleet)
                await self._pause()
        finally:
            await asyncio.to_thread(fleet.end)

    async def _look(self, app: Interlock) -> None:
        database = await app.adatabase()
        summary = Summary(database.sql)
        servers = await app.aservers(all=True)
        async with database.connection() as conn:
            trains = await summary.trains(conn)
            executions = await summary.executions(conn, self._news.from_id)
        for sentence in (*self._news.of_servers(servers), *self._news.of_executions(executions)):
            self._view.say(sentence)
        self._view.draw(servers, trains)
        if self._complete_at is None and len(servers) >= len(SERVERS):
            self._complete_at = time.monotonic()

    def _play(self, fleet: Fleet) -> None:
        """One that is at work dies without a goodbye, and a new one takes its name when the others have noticed."""
        if self._victim is None:
            self._victim = self._choose_victim()
            if self._victim is not None:
                self._view.say(f"kill -9 {self._victim}, which was at work: its lease has to run out")
                fleet.kill(self._victim)
        elif not self._replaced and ServerState.LOST in self._news.servers.values():
            self._view.say(f"starting {self._victim} anew")
            fleet.start(self._victim)
            self._replaced = True

    def _choose_victim(self) -> str | None:
        """Somebody who has just begun with something long, once all have been steady for long enough to judge."""
        if self._complete_at is None or self._shown() < min(self._life / 3, KILL_AFTER):
            return None
        return self._news.just_began.get(LONGEST)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._over.wait(), max(0.0, min(LOOK, self._left())))
        except TimeoutError:
            return

    async def _summary(self, app: Interlock) -> DemoSummary:
        await self._look(app)
        database = await app.adatabase()
        async with database.connection() as conn:
            return DemoSummary(await Summary(database.sql).totals(conn))

    def _shown(self) -> float:
        """Seconds since the fleet was complete: a slow start takes nothing from the show."""
        return 0.0 if self._complete_at is None else time.monotonic() - self._complete_at

    def _left(self) -> float:
        """Seconds until the end: a new server that was started is waited for, because its coming is shown too."""
        is_awaited = self._replaced and len(self._news.servers) <= len(SERVERS)
        return LOOK if is_awaited else self._life - self._shown()
