"""Whatever people and servers do, in whatever order: the sweep finds nothing to repair.

The sweep sets markers that are missing. Everybody who unblocks a manifest sets its marker in the same transaction, so
after every step there must be none; a missing one is a run that would be lost until the next sweep. What the sweep
itself would not see, the end of each example does: with all that holds manifests taken away, each of them runs again.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock import Cancel, Interlock, Retry, Snooze, current_execution, every
from interlock.errors import AlreadyResolved
from interlock.observe.events import MarkersRepaired
from interlock.store.execution import Executions
from interlock.testing import stepper
from tests.harness import databases

IDS = ["hourly", "quick", "child", "grandchild", "asleep"]
BEHAVIOURS = ["succeed", "fail", "retry", "snooze", "cancel", "activate"]
TIMES = [timedelta(seconds=1), timedelta(minutes=1), timedelta(minutes=20), timedelta(hours=1), timedelta(days=1)]


def an_app(dsn: str, behaviour: dict) -> Interlock:
    app = Interlock(dsn, name="random", max_attempts=2, retry_delay=timedelta(seconds=1))

    @app.train
    async def work() -> str | Retry | Snooze | Cancel:
        match behaviour["next"]:
            case "fail":
                raise ValueError("as told")
            case "retry":
                return Retry(timedelta(seconds=5))
            case "snooze":
                return Snooze(timedelta(seconds=5))
            case "cancel":
                return Cancel("as told")
            case "activate" if current_execution().manifest == "hourly":
                await current_execution().aactivate("asleep")
        return "done"

    hourly = app.schedule("hourly", work.bind(), every(hours=1))
    app.schedule("quick", work.bind(), every(seconds=30))
    hourly.then("child", work.bind()).then("grandchild", work.bind())
    hourly.then("asleep", work.bind(), dormant=True)
    return app


class Operations(RuleBasedStateMachine):
    server = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.behaviour, self.repairs = {"next": "succeed"}, []

    def do(self, coroutine):
        return self.runner.run(coroutine)

    @initialize()
    def open(self) -> None:
        self.dsn = databases.create_migrated(self.server)
        self.app = an_app(self.dsn, self.behaviour)
        self.app.events.subscribe(self.repairs.append, (MarkersRepaired,))
        self.step = self.do(self.stack.enter_async_context(stepper(self.app)))

    def teardown(self) -> None:
        try:
            assert self.do(self._runs_again()) == {"hourly", "quick", "child", "grandchild"}
        finally:
            self.do(self.stack.aclose())
            self.runner.close()
            databases.drop(self.server, self.dsn)

    async def _runs_again(self) -> set[str]:
        """Who completes a run once nothing holds them and their time has come; no sweep has looked in between."""
        self.behaviour["next"] = "succeed"
        await self.app.aresume()
        for external_id in IDS:
            await self.app.aenable(external_id)
        await self.app.dead_letters.aacknowledge_all()
        await self.step.drain()
        self.step.advance(timedelta(days=2))
        database = await self.app.adatabase()
        async with database.connection() as conn:
            last = await conn.fetchval("SELECT coalesce(max(id), 0) FROM interlock.execution")
            await self.step.drain()
            rows = await conn.fetch(
                "SELECT m.external_id FROM interlock.execution e JOIN interlock.manifest m ON m.id = e.manifest_id"
                " WHERE e.id > $1 AND e.state = 'completed' AND m.external_id <> 'asleep'",
                last,
            )
        return {row[0] for row in rows}

    @rule(role=st.sampled_from(["manifests", "dispatch", "worker"]))
    def tick(self, role: str) -> None:
        self.do(self.step.tick(role))

    @rule(by=st.sampled_from(TIMES))
    def advance(self, by: timedelta) -> None:
        self.step.advance(by)

    @rule(how=st.sampled_from(BEHAVIOURS))
    def behave(self, how: str) -> None:
        self.behaviour["next"] = how

    @rule(which=st.sampled_from(IDS), act=st.sampled_from(["atrigger", "aenable", "adisable", "acancel"]))
    def operate(self, which: str, act: str) -> None:
        self.do(getattr(self.app, act)(which))

    @rule(act=st.sampled_from(["apause", "aresume"]))
    def switch(self, act: str) -> None:
        self.do(getattr(self.app, act)())

    @rule(group=st.just("default"))
    def cancel_group(self, group: str) -> None:
        self.do(self.app.acancel_group(group))

    @rule(minutes=st.integers(1, 90))
    def edit(self, minutes: int) -> None:
        work = self.app.trains.get("work")
        self.do(self.app.aput_schedule("quick", work.bind(), every(minutes=minutes)))

    @rule(requeue=st.booleans())
    def resolve(self, requeue: bool) -> None:
        self.do(self._resolve(requeue=requeue))

    async def _resolve(self, *, requeue: bool) -> None:
        for letter in await self.app.dead_letters.alist(limit=1):
            try:
                await (self.app.dead_letters.arequeue if requeue else self.app.dead_letters.aacknowledge)(letter.id)
            except AlreadyResolved:  # pragma: no cover
                raise AssertionError("nobody else is here") from None

    @rule()
    def lose_a_server(self) -> None:
        """Somebody claimed what waits, and died."""
        self.do(self._lose())

    async def _lose(self) -> None:
        database, server = await self.app.adatabase(), uuid4()
        async with database.transaction() as conn:
            await conn.execute(
                "INSERT INTO interlock.server (id, name, roles, trains, tags, slots, host, pid, version, state, lease,"
                " lease_until, renewed_at, steady_since, started_at, ended_at) VALUES ($1, 'x', '{}', '{}', '{}', 1,"
                " 'h', 1, '0', 'lost', '1 s', now(), now(), now(), now(), now())",
                server,
            )
            await conn.execute(
                "WITH j AS (DELETE FROM interlock.background_job RETURNING execution_id)"
                " UPDATE interlock.execution SET state = 'in_progress', server_id = $1, claim_token = $2,"
                " started_at = $3 FROM j WHERE id = j.execution_id",
                server, uuid4(), self.step.now,
            )  # fmt: skip
        await self.step.tick("recovery")

    @precondition(lambda self: hasattr(self, "step"))
    @invariant()
    def the_sweep_repairs_nothing(self) -> None:
        self.do(self.step.tick("sweep"))
        assert self.repairs == []


PHASES = [Phase.generate]  # a shrunk example would cost many databases; the steps are printed as they were


def play(server: str, *, examples: int, steps: int) -> None:
    Operations.server = server
    run_state_machine_as_test(
        Operations,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        ),
    )


def test_after_random_operations_the_sweep_repairs_nothing(postgres_dsn):
    play(postgres_dsn, examples=6, steps=60)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_after_ten_thousand_random_operations_the_sweep_repairs_nothing(postgres_dsn):
    play(postgres_dsn, examples=100, steps=100)


def test_control_a_settle_that_sets_no_marker_is_found_out(postgres_dsn, monkeypatch):
    async def forget(self, conn, ids, now) -> set[int]:
        return set()

    monkeypatch.setattr(Executions, "_unblock_locked", forget)
    with pytest.raises(AssertionError):
        play(postgres_dsn, examples=20, steps=60)
