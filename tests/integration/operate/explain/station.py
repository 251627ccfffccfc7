"""An app whose trains do nothing, fail or are missing, and the explanations that it gives."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from interlock import Interlock
from interlock.cli.root import root
from interlock.testing import stepper

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    import asyncpg

    from interlock.operate.blockers import Blocker
    from interlock.testing import Stepper

START = datetime(2030, 5, 6, 12, 0, tzinfo=UTC)  # a Monday
HOUR = timedelta(hours=1)


def check_command(line: str) -> None:
    """What is advised can be typed: every word of it is a command, an argument or a flag that exists."""
    program, *words = shlex.split(line)
    if program == "psql":
        assert words[0] == "$(interlock dsn)"
        return
    assert program == "interlock"
    command: click.Command = root
    ctx = click.Context(root, info_name="interlock")
    while isinstance(command, click.Group):
        _, command, words = command.resolve_command(ctx, words)
    command.make_context(str(command.name), words, parent=ctx)


class Station:
    def __init__(self, dsn: str, conn: asyncpg.Connection, stack: AsyncExitStack) -> None:
        self.dsn, self.conn, self._stack = dsn, conn, stack
        self.step: Stepper | None = None
        self.opened()

    def opened(self, **options: Any) -> Interlock:
        """The app anew, with these settings; trains and manifests are declared before `server`."""
        self.app = app = Interlock(self.dsn, **options)

        @app.train
        async def work(number: int = 0) -> int:
            return number

        @app.train(max_attempts=2)
        async def fail() -> None:
            raise ValueError("no")

        self.work, self.fail = work, fail
        return app

    async def client(self) -> None:
        """Nothing runs."""
        await self._stack.enter_async_context(self.app)

    async def server(self) -> Stepper:
        """A registered server with every role, in which nothing runs by itself."""
        self.step = await self._stack.enter_async_context(stepper(self.app, start=START))
        return self.step

    async def ticks(self, *roles: str) -> None:
        for role in roles:
            await self.step.tick(role)

    async def why(self, subject: str, **options: Any) -> dict[str, Blocker]:
        """The blockers by their code."""
        found = await self.app.aexplain(subject, **options)
        for blocker in found.blockers:
            check_command(blocker.command)
        return {str(blocker.code): blocker for blocker in found.blockers}

    async def codes(self, subject: str, **options: Any) -> list[str]:
        return list(await self.why(subject, **options))

    async def standing(self, subject: str) -> str:
        return (await self.app.aexplain(subject)).standing

    async def entry(self) -> int:
        """The latest entry."""
        return await self.conn.fetchval("SELECT max(id) FROM interlock.work_queue")

    async def execution(self) -> int:
        """The latest execution."""
        return await self.conn.fetchval("SELECT max(id) FROM interlock.execution")
