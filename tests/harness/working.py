"""Servers with a worker as children of a test, a ledger of every body that ran, and a look at what came of it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock import Interlock, LeaseLost, current_execution
from interlock.observe.events import Draining, LeaseLostByServer, ServerLost, SettleRefused
from tests.harness.child import tell
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    import asyncpg

    from tests.harness.processes import Process

LEDGER = "CREATE TABLE public.ledger (execution bigint, lineage bigint, pid int, at timestamptz DEFAULT now())"
TOLD = {Draining: "draining", SettleRefused: "refused", LeaseLostByServer: "lease_lost", ServerLost: "marked"}
STARTING = 60.0


def declare(app: Interlock) -> None:
    @app.train
    async def work(number: int, seconds: float = 0.0) -> int:
        await record(app)
        await asyncio.sleep(seconds)
        return number

    @app.train
    async def announced(seconds: float = 60.0) -> str:
        """Tells its parent that it runs, and how it ended."""
        me = current_execution()
        tell("running", execution=me.id, attempt=me.attempt)
        try:
            await asyncio.sleep(seconds)
        except LeaseLost:
            tell("met", what="LeaseLost")
            return f"stale {os.getpid()}"
        except asyncio.CancelledError:
            tell("met", what="CancelledError", at=time.monotonic())
            raise
        return f"done {os.getpid()}"

    @app.train
    def checking() -> None:
        me = current_execution()
        tell("running", execution=me.id)
        while not me.cancelled:
            time.sleep(0.01)
        tell("met", what="cancelled")

    @app.train
    async def blocking(seconds: float) -> str:
        tell("running", execution=current_execution().id)
        time.sleep(seconds)  # noqa: ASYNC251  that is the point
        return "done"

    @app.train
    async def deadly() -> None:
        tell("running", execution=current_execution().id)
        os.kill(os.getpid(), signal.SIGKILL)


async def record(app: Interlock) -> None:
    database, me = await app.adatabase(), current_execution()
    async with database.connection() as conn:
        await conn.execute(
            "INSERT INTO public.ledger (execution, lineage, pid)"
            " SELECT id, first_entry_id, $2 FROM interlock.execution WHERE id = $1",
            me.id,
            os.getpid(),
        )


def an_app(dsn: str, name: str, **options: Any) -> Interlock:
    seconds = {key: timedelta(seconds=value) for key, value in options.items() if isinstance(value, float)}
    app = Interlock(dsn, server_name=name, **{**SHORT_LEASES, **options, **seconds})
    declare(app)
    for kind, word in TOLD.items():
        app.events.subscribe(lambda _, word=word: tell(word), (kind,))
    return app


async def serve(dsn: str, name: str, options: dict[str, Any], roles: Sequence[str]) -> None:
    """The child: a server until it is told to stop."""
    if options.pop("token_off", False):
        settle_without_token()
    app = an_app(dsn, name, **options)
    supervisor, keeper = await app._server(roles)
    with supervisor.handle_signals():
        await supervisor.start()
        tell("up", server=keeper.server)
        try:
            await supervisor._stop_wanted.wait()
        finally:
            await supervisor.stop()
            await app.aclose()
    tell("stopped", forced=supervisor.forced)


def settle_without_token() -> None:
    """The control: completion by id alone."""
    from interlock.store import sql

    compile_statement = sql.compile_statement

    def unguarded(name: str, text: str, schema: str) -> sql.Statement:
        if name == "execution/complete":
            assert "and e.claim_token = outcome.token" in text
            text = text.replace("and e.claim_token = outcome.token", "and outcome.token is not null")
        return compile_statement(name, text, schema)

    sql.compile_statement = unguarded


class WorkingFleet:
    """Servers, and the database seen from outside."""

    def __init__(self, fleet, dsn: str, conn: asyncpg.Connection) -> None:
        self.fleet, self.dsn, self.conn, self.started = fleet, dsn, conn, 0

    async def server(
        self, *, dsn: str = "", roles: Sequence[str] = ("worker",), env: dict[str, str] | None = None, **options: Any
    ):
        process = self.launch(dsn=dsn, roles=roles, env=env, **options)
        process.server = (await process.expect("up", STARTING))["server"]
        return process

    def launch(
        self, *, dsn: str = "", roles: Sequence[str] = ("worker",), env: dict[str, str] | None = None, **options: Any
    ):
        self.started += 1
        name = f"s{self.started}"
        arguments = (dsn or self.dsn, name, options, list(roles))
        return self.fleet.start("tests.harness.working:serve", *arguments, env=env, name=name)

    async def may_judge(self, process) -> None:
        """It has been steady for longer than a lease: from now on it finds who is lost."""
        question = (
            "SELECT greatest(steady_since, pg_postmaster_start_time()) + lease * 1.5 < statement_timestamp()"
            " FROM interlock.server WHERE id = $1::text::uuid"
        )
        await eventually(lambda: self.conn.fetchval(question, process.server), 60, "a judge that may judge")

    async def executions(self, columns: str = "*") -> list[asyncpg.Record]:
        return await self.conn.fetch(f"SELECT {columns} FROM interlock.execution ORDER BY id")

    async def all_ended(self, lineages: int, timeout: float = 60.0) -> None:  # noqa: ASYNC109  the timeout names what was awaited
        question = "SELECT count(DISTINCT first_entry_id) FROM interlock.execution WHERE state = 'completed'"

        async def ended() -> bool:
            return await self.conn.fetchval(question) == lineages

        await eventually(ended, timeout, f"{lineages} completed")

    async def overlapping_claims(self) -> int:
        """How many pairs of attempts at the same work were claimed at the same time."""
        return await self.conn.fetchval(
            "SELECT count(*) FROM interlock.execution a JOIN interlock.execution b"
            " ON a.first_entry_id = b.first_entry_id AND a.id < b.id"
            " WHERE tstzrange(a.started_at, a.ended_at) && tstzrange(b.started_at, b.ended_at)"
        )


async def running_on(servers: Sequence[Process]) -> Process:
    """The first of these servers whose job says that it runs."""
    tasks = {asyncio.create_task(server.expect("running")): server for server in servers}
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    return tasks[done.pop()]


def client(dsn: str, **options: Any) -> Interlock:
    """The same trains, for a test that enqueues; how often and when work is tried again is the caller's word."""
    app = Interlock(dsn, **{**SHORT_LEASES, **options})
    declare(app)
    return app
