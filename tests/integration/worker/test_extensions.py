"""Resources, middleware and hooks: what an app puts around its trains, and that none of it can harm the worker."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from interlock import Cancel, Snooze, current_execution
from interlock.errors import DeclarationAfterStart, InvalidOption, ResourceNotOpen
from interlock.observe.events import HookFailed, SettleRefused
from interlock.testing import stepper
from tests.harness.waiting import eventually
from tests.integration.worker import process_trains

if TYPE_CHECKING:
    from interlock import FinishedRun


async def ran(works, yard, train: str = "work", input=None, **columns) -> dict:  # noqa: A002  the column's own word
    execution = await yard.dispatch(train, input, **columns)
    return await works.ended(execution)


class TestResources:
    async def test_a_resource_is_open_before_the_first_job_and_closed_after_the_last(self, works, yard):
        story = []

        @works.app.lifespan
        async def pool():
            story.append("open")
            yield {"connected": True}
            story.append("closed")

        @works.app.train
        async def work() -> bool:
            story.append("async")
            return pool.value["connected"]

        @works.app.train
        def plain() -> bool:
            story.append("plain")
            return pool.value["connected"]

        runs = [await yard.dispatch("work"), await yard.dispatch("plain")]
        async with works.app.running(["worker"]):
            assert [(await works.ended(run))["output"] for run in runs] == ["true"] * 2
        assert (story[0], sorted(story[1:3]), story[3:]) == ("open", ["async", "plain"], ["closed"])

    async def test_it_outlives_a_job_that_ends_during_the_shutdown(self, works, yard):
        begun, seen = asyncio.Event(), []

        @works.app.lifespan
        async def pool():
            yield seen
            seen.append("closed")

        @works.app.train
        async def work() -> None:
            begun.set()
            await asyncio.sleep(0.3)
            pool.value.append("worked")

        run = await yard.dispatch()
        async with works.app.running(["worker"]):
            await asyncio.wait_for(begun.wait(), 60)
        assert seen == ["worked", "closed"]
        assert (await yard.execution(run))["state"] == "completed"

    async def test_several_close_in_reverse_and_may_be_context_managers_already(self, works, yard):
        story = []

        def declare(name: str):
            @asynccontextmanager
            async def one():
                story.append(f"+{name}")
                yield name
                story.append(f"-{name}")

            return works.app.lifespan(one)

        first, second = declare("a"), declare("b")

        @works.app.train
        async def work() -> str:
            return first.value + second.value

        async with works.app.running(["worker"]):
            assert (await ran(works, yard))["output"] == '"ab"'
        assert story == ["+a", "+b", "-b", "-a"]

    async def test_one_task_opens_and_closes_it_as_task_groups_demand(self, works, yard):
        @works.app.lifespan
        async def group():
            async with asyncio.TaskGroup() as tasks:
                yield tasks

        @works.app.train
        async def work() -> str:
            return await group.value.create_task(asyncio.sleep(0, "done"))

        async with works.app.running(["worker"]):
            assert (await ran(works, yard))["output"] == '"done"'

    async def test_one_that_cannot_be_opened_ends_the_server_before_it_claims(self, works, yard):
        closed = []

        @works.app.lifespan
        async def fine():
            yield 1
            closed.append("never reached: it ends with the error of the other")

        @works.app.lifespan
        async def broken():
            raise ConnectionError("no broker")
            yield

        @works.app.train
        async def work() -> None: ...

        run = await yard.dispatch()
        with pytest.raises(ConnectionError, match="no broker"):
            await works.start()
        assert (await yard.execution(run))["state"] == "pending"
        with pytest.raises(ResourceNotOpen):
            _ = fine.value

    async def test_outside_of_a_worker_it_is_not_open_until_somebody_opens_it(self, works):
        @works.app.lifespan
        async def pool():
            yield 7

        with pytest.raises(ResourceNotOpen, match=r"pool\.opened"):
            _ = pool.value
        async with pool.opened() as value:
            assert (value, pool.value) == (7, 7)
        with pytest.raises(ResourceNotOpen):
            _ = pool.value

    async def test_a_server_that_runs_no_trains_opens_nothing(self, works):
        opened = []

        @works.app.lifespan
        async def pool():
            opened.append(1)
            yield

        async with works.app.running(["manifests"]):
            assert opened == []


class TestMiddleware:
    async def test_each_body_runs_inside_all_of_it_the_first_outermost(self, works, yard):
        story = []

        def declare(name: str):
            @works.app.middleware
            async def around(call_next):
                story.append(f"{name} of {current_execution().train}")
                output = await call_next()
                story.append(f"{name} saw {output}")
                return output + 1

        declare("outer")
        declare("inner")

        @works.app.train
        def work(number: int) -> int:
            story.append(f"in thread: {threading.current_thread() is not threading.main_thread()}")
            return number

        await works.start()
        assert (await ran(works, yard, input={"number": 1}))["output"] == "3"
        assert story == ["outer of work", "inner of work", "in thread: True", "inner saw 1", "outer saw 2"]

    async def test_a_chain_and_a_child_process_are_wrapped_as_a_whole(self, works, yard):
        seen = []

        @works.app.middleware
        async def around(call_next):
            seen.append(output := await call_next())
            return output

        works.app.chain("twice", _add_one, _add_one)
        works.app.trains._add(process_trains.square)
        await works.start()
        assert (await ran(works, yard, "twice", {"number": 1}))["output"] == "3"
        row = await ran(works, yard, "square", {"n": 4})
        assert (row["state"], seen[0], seen[1]["square"]) == ("completed", 3, 16)

    @pytest.mark.parametrize("swallow", [True, False])
    async def test_it_may_turn_an_error_into_an_output_or_raise_its_own(self, works, yard, swallow):
        @works.app.middleware
        async def around(call_next):
            try:
                return await call_next()
            except ValueError:
                if swallow:
                    return "saved"
                raise LookupError("its own") from None

        @works.app.train
        async def work() -> str:
            raise ValueError("broken")

        await works.start()
        row = await ran(works, yard)
        expected = ("completed", None) if swallow else ("failed", "LookupError")
        assert (row["state"], row["error_type"]) == expected

    async def test_what_it_returns_is_checked_as_the_trains_own_output(self, works, yard):
        @works.app.middleware
        async def around(call_next):
            await call_next()
            return object()

        @works.app.train
        async def work() -> int:
            return 1

        await works.start()
        assert (await ran(works, yard))["failure"] == "invalid_output"

    async def test_a_timeout_reaches_the_body_through_it(self, works, yard):
        met = []

        @works.app.middleware
        async def around(call_next):
            try:
                return await call_next()
            finally:
                met.append("left")

        @works.app.train
        async def work() -> None:
            await asyncio.sleep(60)

        await works.start()
        assert ((await ran(works, yard, limit=0.2))["failure"], met) == ("timeout", ["left"])


async def _add_one(number: int) -> int:
    return number + 1


class Heard:
    """Hooks that note what they were told, and what the database said at that moment."""

    def __init__(self, works) -> None:
        self.works, self.runs, self.states = works, [], []

    async def __call__(self, run: FinishedRun) -> None:
        database = await self.works.app.adatabase()
        async with database.connection() as conn:
            state = "SELECT state FROM interlock.execution WHERE id = $1"
            self.states.append(await conn.fetchval(state, run.execution_id))
        self.runs.append(run)

    async def of(self, count: int) -> list[FinishedRun]:
        await eventually(lambda: len(self.runs) >= count, 60, f"{count} calls of the hook")
        return self.runs


class TestHooks:
    @pytest.mark.parametrize("manifest", [True, False], ids=["of a manifest", "ad hoc"])
    async def test_a_success_is_heard_after_its_commit_with_its_output(self, works, yard, manifest):
        heard, failures = Heard(works), Heard(works)
        works.app.on_success(heard)
        works.app.on_failure(failures)

        @works.app.train
        async def work() -> dict[str, int]:
            return {"rows": 3}

        owner = await yard.manifest("nightly") if manifest else None
        await works.start()
        row = await ran(works, yard, **({"manifest": owner, "kind": "scheduled", "fire_key": "f"} if manifest else {}))
        [run] = await heard.of(1)
        assert (run.execution_id, run.train, run.output, run.error) == (row["id"], "work", {"rows": 3}, None)
        assert run.manifest == ("nightly" if manifest else None)
        assert (heard.states, failures.runs) == (["completed"], [])

    async def test_a_failure_is_heard_with_its_error_and_what_follows(self, works, yard):
        heard = Heard(works)
        works.app.on_failure(heard)

        @works.app.train
        async def work() -> None:
            raise ValueError("broken")

        await works.start()
        await ran(works, yard, attempt=1, max_attempts=3)
        await heard.of(1)
        await ran(works, yard, attempt=3, max_attempts=3)
        first, last = await heard.of(2)
        assert (first.error_type, first.error_message, str(first.error)) == ("ValueError", "broken", "broken")
        assert first.retry_in == timedelta(seconds=1)
        [letter] = await yard.dead_letters()
        assert (last.retry_in, last.dead_letter_id, heard.states) == (None, letter["id"], ["failed"] * 2)

    async def test_a_timeout_is_a_failure(self, works, yard):
        heard = Heard(works)
        works.app.on_failure(heard)

        @works.app.train
        async def work() -> None:
            await asyncio.sleep(60)

        await works.start()
        await ran(works, yard, limit=0.2)
        [run] = await heard.of(1)
        assert run.error_type == "TimeoutError"

    async def test_hooks_of_one_train_come_first_and_hear_of_no_other(self, works, yard):
        story = []

        async def mine(run: FinishedRun) -> None:
            story.append(f"mine {run.train}")

        @works.app.on_success
        async def all_of_them(run: FinishedRun) -> None:
            story.append(f"all {run.train}")

        @works.app.train(on_success=mine)
        async def work() -> None: ...

        @works.app.train
        async def other() -> None: ...

        async with works.app.running(["worker"]):
            await ran(works, yard, "work")
            await ran(works, yard, "other")
        assert story == ["mine work", "all work", "all other"]

    @pytest.mark.parametrize("outcome", [Cancel("no"), Snooze(timedelta(hours=1))], ids=["cancel", "snooze"])
    async def test_what_neither_succeeded_nor_failed_is_nobodys_business(self, works, yard, outcome):
        heard = Heard(works)
        works.app.on_success(heard)
        works.app.on_failure(heard)

        @works.app.train
        async def work() -> Cancel | Snooze:
            return outcome

        async with works.app.running(["worker"]):
            await ran(works, yard)
        assert heard.runs == []

    @pytest.mark.parametrize(
        "error", [ValueError("broken"), SystemExit(3), KeyboardInterrupt()], ids=lambda e: type(e).__name__
    )
    async def test_a_hook_that_raises_is_an_event_and_the_worker_goes_on(self, works, yard, error):
        heard = Heard(works)

        @works.app.on_success
        async def broken(run: FinishedRun) -> None:
            raise error

        works.app.on_success(heard)

        @works.app.train
        async def work() -> None: ...

        await works.start()
        for _ in range(2):
            assert (await ran(works, yard))["state"] == "completed"
        await heard.of(2)
        events = works.told(HookFailed)
        assert [(event.occasion, event.error) for event in events] == [("on_success", error)] * 2
        assert "broken" in events[0].hook

    async def test_a_worker_whose_hooks_are_slow_claims_no_more_until_they_catch_up(self, works, yard):
        gate = asyncio.Event()

        app = works.new_app(worker_slots=1)

        @app.on_success
        async def slow(run: FinishedRun) -> None:
            await gate.wait()

        @app.train
        async def work() -> None: ...

        runs = [await yard.dispatch() for _ in range(40)]
        await works.start(app)
        await works.ended(runs[20])
        later = await yard.dispatch()
        pending = [id for id, state in (await yard.states()).items() if state == "pending"]  # noqa: A001  the row's own word
        assert later in pending
        gate.set()
        assert (await works.ended(later))["state"] == "completed"

    async def test_a_worker_goes_on_as_soon_as_its_hooks_have_caught_up(self, works, monkeypatch):
        monkeypatch.setattr("interlock.worker.worker.UNSETTLED_PER_SLOT", 1)
        seldom, caught_up, ran, heard = timedelta(seconds=600), asyncio.Event(), [], []
        app = works.new_app(worker_slots=1, job_dispatcher_polling_interval=seldom, worker_polling_interval=seldom)

        @app.on_success
        async def slow(run: FinishedRun) -> None:
            heard.append(1)
            await caught_up.wait()

        @app.train
        async def work() -> None:
            ran.append(1)

        handles = await app.aenqueue_many([work.bind() for _ in range(8)])
        await works.start(app)
        await eventually(lambda: len(heard) == len(ran) > 1, 60, "more hooks than it lets wait")
        await asyncio.sleep(0.3)  # for the last notices of what ended, which wake it in vain
        behind = len(ran)
        caught_up.set()
        for handle in handles:
            await handle.aresult(timeout=30)
        assert behind < len(ran) == 8

    async def test_hooks_that_still_run_at_shutdown_finish_before_resources_close(self, works, yard):
        story, begun = [], asyncio.Event()

        @works.app.lifespan
        async def pool():
            yield story
            story.append("closed")

        @works.app.on_success
        async def slow(run: FinishedRun) -> None:
            begun.set()
            await asyncio.sleep(0.3)
            pool.value.append("heard")

        @works.app.train
        async def work() -> None: ...

        await yard.dispatch()
        async with works.app.running(["worker"]):
            await asyncio.wait_for(begun.wait(), 60)
        assert story == ["heard", "closed"]

    async def test_a_settle_that_is_refused_is_heard_by_nobody(self, works, yard):
        heard = Heard(works)
        works.app.on_success(heard)

        @works.app.train
        async def work() -> None:
            async with (await works.app.adatabase()).connection() as conn:
                await conn.execute("UPDATE interlock.execution SET claim_token = gen_random_uuid()")

        await yard.dispatch()
        async with works.app.running(["worker"]):
            await eventually(lambda: works.told(SettleRefused), 60, "the refusal")
        assert heard.runs == []

    async def test_a_step_of_a_stepper_ends_when_everybody_has_heard(self, works, yard):
        heard = Heard(works)
        works.app.on_success(heard)

        @works.app.train
        async def work() -> None: ...

        async with stepper(works.app) as step:
            await yard.dispatch()
            await step.tick("worker")
            assert len(heard.runs) == 1


def _plain(argument):
    """Not async."""


async def _two(_one, _other):
    """One too many."""


async def _no_generator():
    """It never yields."""


async def _asks(argument):
    yield argument


@pytest.mark.parametrize("wrong", [None, 7, _plain, _two, "name"])
@pytest.mark.parametrize("declare", ["middleware", "on_success", "on_failure"])
def test_what_is_no_async_function_of_one_parameter_is_refused(works, declare, wrong):
    with pytest.raises(InvalidOption, match="async function of one parameter"):
        getattr(works.app, declare)(wrong)


@pytest.mark.parametrize("wrong", [7, _plain, _two])
@pytest.mark.parametrize("option", ["on_success", "on_failure"])
def test_a_train_refuses_them_too(works, option, wrong):
    with pytest.raises(InvalidOption, match=option):
        works.app.train(name="t", **{option: wrong})(_no_generator)


@pytest.mark.parametrize("wrong", [None, 7, _plain, _no_generator, _asks])
def test_a_lifespan_is_an_async_generator_function_without_parameters(works, wrong):
    with pytest.raises(InvalidOption, match="async generator function"):
        works.app.lifespan(wrong)


async def test_nothing_is_declared_after_the_start(works):
    async with works.app.running(["manifests"]):
        for declare in ("lifespan", "middleware", "on_success", "on_failure"):
            with pytest.raises(DeclarationAfterStart):
                getattr(works.app, declare)(_plain)


async def test_what_is_dispatched_inline_has_run_when_the_tick_ends(works):
    @works.app.train
    async def work(number: int) -> int:
        return number + 1

    async with stepper(works.app, inline=True) as step:
        handle = await work.aenqueue(1)
        await step.tick("dispatch")
        assert await handle.aresult(timeout=0) == 2


async def test_inline_a_train_that_is_submitted_elsewhere_runs_in_place(works):
    """A test of it needs no runner, and tells none."""

    @works.app.train
    async def far(number: int) -> int:
        return number + 1

    class Runner:
        name, told = "runner", 0

        async def submit(self, _) -> None:
            self.told += 1

        async def aclose(self) -> None:
            pass

    runner = Runner()
    works.app.add_submitter(runner, trains=[far])
    async with stepper(works.app, inline=True) as step:
        handle = await far.aenqueue(1)
        await step.tick("dispatch")
        assert await handle.aresult(timeout=0) == 2
    assert runner.told == 0
