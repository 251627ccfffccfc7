"""A train activates its own dormant children, each at most once at a time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from interlock import Backoff, LeaseLost, current_execution, failpoints
from interlock.observe.events import ActivationSkipped
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import eventually


@pytest.fixture
async def family(yard):
    """Its dormant child is paused, so that what was queued can be looked at."""
    await yard.conn.execute("INSERT INTO interlock.train (name, paused) VALUES ('repair', true)")
    parent = await yard.manifest("parent", train="extract")
    child = await yard.manifest("repair", kind="dormant", parent=parent, planned=False, train="repair")
    return parent, child


def declare(app, answers: list, name: str = "repair", *, times: int = 1, bound=True) -> None:
    @app.train
    async def repair(day: int = 0) -> int:
        return day

    @app.train
    async def extract() -> None:
        me, chosen = current_execution(), repair.bind(day=7) if bound else None
        answers.extend([await me.aactivate(name, chosen) for _ in range(times)])


async def run(works, yard, parent) -> dict:
    execution = await yard.dispatch("extract", kind="scheduled", manifest=parent, fire_key="f", attempt=3)
    await works.start()
    return await works.ended(execution)


async def test_a_dormant_child_is_queued_with_the_input_that_was_chosen(works, yard, family):
    declare(works.app, answers := [])
    row = await run(works, yard, family[0])
    [entry] = await yard.queued()
    assert answers == [True]
    assert (entry["kind"], entry["manifest_id"], entry["input"]) == ("dormant", family[1], '{"day": 7}')
    assert entry["caused_by_execution_id"] == row["id"]


async def test_without_an_input_it_takes_its_declared_one(works, yard, family):
    declare(works.app, [], bound=False)
    await run(works, yard, family[0])
    assert [entry["input"] for entry in await yard.queued()] == ["{}"]


@pytest.mark.parametrize("bound", [True, False])
async def test_it_has_the_policy_of_its_train_with_or_without_an_input(works, yard, family, bound):
    @works.app.train(max_attempts=9, timeout=timedelta(seconds=77), priority=33, retry=Backoff(timedelta(seconds=5)))
    async def repair() -> None: ...

    @works.app.train
    async def extract() -> None:
        await current_execution().aactivate("repair", repair.bind() if bound else None)

    await run(works, yard, family[0])
    [entry] = await yard.queued()
    assert (entry["max_attempts"], entry["timeout"], entry["priority"]) == (9, timedelta(seconds=77), 33)
    assert entry["retry_delay"] == timedelta(seconds=5)


async def test_it_has_the_policy_that_other_servers_announced_for_a_train_that_is_not_here(works, yard, family):
    await yard.conn.execute("UPDATE interlock.train SET max_attempts = 9, priority = 33 WHERE name = 'repair'")

    @works.app.train
    async def extract() -> None:
        await current_execution().aactivate("repair")

    await run(works, yard, family[0])
    [entry] = await yard.queued()
    assert (entry["max_attempts"], entry["priority"]) == (9, 33)


async def test_an_input_that_is_too_large_is_refused_here_too(works, yard, family):
    app = works.new_app(max_input_bytes=100)

    @app.train
    async def repair(text: str) -> None: ...

    @app.train
    async def extract() -> None:
        await current_execution().aactivate("repair", repair.bind("x" * 100))

    execution = await yard.dispatch("extract", kind="scheduled", manifest=family[0], fire_key="f", attempt=3)
    await works.start(app)
    assert (await works.ended(execution))["error_type"] == "interlock.errors.PayloadTooLarge"
    assert await yard.queued() == []


async def test_a_child_that_is_queued_already_is_skipped_with_a_warning(works, yard, family):
    declare(works.app, answers := [], times=2)
    await run(works, yard, family[0])
    assert answers == [True, False]
    assert [event.child for event in works.told(ActivationSkipped)] == ["repair"]
    assert len(await yard.queued()) == 1


async def test_a_child_that_is_active_already_is_skipped(works, yard, family):
    declare(works.app, answers := [])
    await yard.claimed(await yard.dispatch("other", kind="dormant", manifest=family[1]))
    await run(works, yard, family[0])
    assert answers == [False]


async def test_a_child_that_is_switched_off_is_skipped_with_a_warning(works, yard, family):
    declare(works.app, answers := [])
    await yard.conn.execute("UPDATE interlock.manifest SET enabled = false WHERE id = $1", family[1])
    await run(works, yard, family[0])
    assert answers == [False]
    assert [event.child for event in works.told(ActivationSkipped)] == ["repair"]
    assert await yard.queued() == []


async def test_only_ones_own_dormant_children_can_be_activated(works, yard, family):
    await yard.manifest("stranger", train="repair")
    declare(works.app, [], "stranger")
    row = await run(works, yard, family[0])
    assert row["error_type"] == "interlock.errors.UnknownChild"
    assert await yard.queued() == []


@pytest.mark.parametrize(("name", "chosen"), [(5, None), ("", None), ("repair", "x"), ("repair", {"day": 1})])
async def test_what_names_no_child_or_binds_no_input_is_refused(works, yard, family, name, chosen):
    @works.app.train
    async def extract() -> None:
        await current_execution().aactivate(name, chosen)

    row = await run(works, yard, family[0])
    assert row["error_type"] == "interlock.errors.InvalidOption"
    assert await yard.queued() == []


async def test_input_for_another_train_is_refused_and_nothing_is_queued(works, yard, family):
    @works.app.train
    async def other() -> None: ...

    @works.app.train
    async def extract() -> None:
        await current_execution().aactivate("repair", other.bind())

    row = await run(works, yard, family[0])
    assert row["error_type"] == "interlock.errors.InvalidOption"
    assert await yard.queued() == []


async def test_two_that_activate_one_child_at_once_queue_it_once(works, yard, family):
    answers = []

    @works.app.train
    async def repair() -> None: ...

    @works.app.train
    async def extract() -> None:
        me = current_execution()
        answers.extend(await asyncio.gather(*(me.aactivate("repair") for _ in range(6))))

    await run(works, yard, family[0])
    assert sorted(answers) == [False] * 5 + [True]
    assert len(await yard.queued()) == 1


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def activate_twice(works, yard, family):
    """One is held where it has queued the child and not committed, until the other is there too or waits for it."""
    arrived, answers, unheld = [], [], []

    async def other_is_there() -> bool:
        async with (await works.app.adatabase()).connection() as conn:
            return len(arrived) == 2 or (not unheld and await conn.fetchval(WAITS) > 0)

    async def meet() -> None:
        arrived.append(1)
        await eventually(other_is_there, 60, "the other that activates")

    @works.app.train
    async def repair() -> None: ...

    @works.app.train
    async def extract() -> None:
        me = current_execution()
        answers.extend(await asyncio.gather(me.aactivate("repair"), me.aactivate("repair")))

    async def activate_twice(*, held: bool = True) -> list[bool]:
        unheld.extend([] if held else [1])
        failpoints.arm("activate.queued", meet)
        await run(works, yard, family[0])
        return sorted(answers)

    yield activate_twice
    failpoints.disarm()


async def test_the_second_of_two_waits_and_finds_the_child_queued(activate_twice, yard):
    assert await activate_twice() == [False, True]
    assert len(await yard.queued()) == 1


async def test_control_without_the_hold_both_queue_it(activate_twice, yard, monkeypatch):
    take_guard_off(monkeypatch, {"execution/hold_child": "for no key update"})
    assert await activate_twice(held=False) == [True, True]
    assert len(await yard.queued()) == 2


async def test_a_plain_function_activates_too(works, yard, family):
    @works.app.train
    def extract() -> bool:
        return current_execution().activate("repair")

    row = await run(works, yard, family[0])
    assert row["output"] == "true"
    assert len(await yard.queued()) == 1


@pytest.fixture
async def taker(migrated):
    """A transaction that has taken the execution away and is not committed."""
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


def declare_taken(works, yard, taker) -> list:
    """Its execution is taken away before it activates; the one who took it commits when the other waits for it."""
    heard: list = []

    async def committed_when_awaited() -> None:
        await eventually(lambda: is_awaited(yard), 60, "the one that activates")
        await taker.execute("COMMIT")

    @works.app.train
    async def extract() -> None:
        await taker.execute("BEGIN")
        await taker.execute("UPDATE interlock.execution SET claim_token = gen_random_uuid()")
        committing = asyncio.create_task(committed_when_awaited())
        try:
            heard.append(await current_execution().aactivate("repair"))
        except LeaseLost as lost:
            heard.append(lost)
        committing.cancel()

    return heard


async def is_awaited(yard) -> bool:
    return await yard.conn.fetchval(WAITS) > 0


async def activated_when_taken(works, yard, taker, parent) -> list:
    heard = declare_taken(works, yard, taker)
    await yard.dispatch("extract", kind="scheduled", manifest=parent, fire_key="f", attempt=3)
    await works.start()
    await eventually(lambda: bool(heard), 60, "the answer")
    return heard


async def test_who_does_not_hold_its_execution_any_more_activates_nothing(works, yard, family, taker):
    [heard] = await activated_when_taken(works, yard, taker, family[0])
    assert isinstance(heard, LeaseLost)
    assert await yard.queued() == []


async def test_control_without_the_hold_of_the_execution_the_stale_one_activates(
    works, yard, family, taker, monkeypatch
):
    take_guard_off(monkeypatch, {"execution/hold_own": "for share"})
    assert await activated_when_taken(works, yard, taker, family[0]) == [True]
    assert len(await yard.queued()) == 1
