"""What people do about messages: look, redrive, park, examine, and let old ones go."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from interlock import Interlock
from interlock.errors import InvalidOption, NotPermitted, UnknownMessage
from interlock.model.act import VIEWER, Actor
from interlock.model.message import Dead, Delivered, Throttled
from interlock.model.outcome import Retry, Snooze
from interlock.observe.events import MessagesRedriven, OutboxFinding, TopicParked
from interlock.outbox.publish import Draft
from interlock.outbox.retention import OutboxRetention
from interlock.outbox.watch import OutboxWatch
from interlock.testing import stepper
from tests.harness.waiting import eventually

HOUR = timedelta(hours=1)


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


class World:
    def __init__(self, dsn: str, **options) -> None:
        self.app = Interlock(dsn, **options)
        self.answers: dict[str, object] = {}
        self.calls: list[tuple[str, bool]] = []

        @self.app.outbox.emitter("*")
        async def send(message, context):
            self.calls.append((message.topic, context.redelivery))
            answer = self.answers.get(message.topic)
            if isinstance(answer, Exception) and not isinstance(answer, Retry | Snooze | Dead | Delivered):
                raise answer
            return answer


async def states(conn) -> list[str]:
    return [row["state"] for row in await conn.fetch("SELECT state FROM interlock.outbox ORDER BY id")]


async def test_each_outcome_is_written_with_its_history(migrated, conn):
    world = World(migrated)
    world.answers = {
        "delivered": Delivered("r-1"),
        "dead": Dead("bad_address", "nobody lives there"),
        "retry": Retry(HOUR, "later"),
        "snooze": Snooze(HOUR),
        "raises": ValueError("broken\0pipe"),
        "throttled": Throttled(HOUR, "slow down"),
    }
    async with stepper(world.app) as step:
        for topic in world.answers:
            await world.app.outbox.apublish(conn, topic, {})
        drained = await step.tick("outbox")
        assert drained.claimed == 6
        assert drained.settled == {"delivered": 1, "dead": 1, "retry": 3, "snooze": 1}
        rows = {row["topic"]: row for row in await conn.fetch("SELECT * FROM interlock.outbox")}
        assert (rows["delivered"]["record_id"], rows["dead"]["failure"]) == ("r-1", "bad_address")
        assert (rows["retry"]["attempts"], rows["snooze"]["attempts"]) == (1, 0)
        assert rows["raises"]["error_message"] == "broken\\x00pipe"
        detail = await world.app.outbox.aget(rows["raises"]["message_id"])
        assert [(each.outcome, each.error_type) for each in detail.history] == [("retry", "ValueError")]
        assert (await step.tick("outbox")).claimed == 0
        step.advance(2 * HOUR)
        assert (await step.tick("outbox")).claimed == 4


async def test_redrive_is_chosen_rated_and_recorded(migrated, conn):
    world = World(migrated)
    told = []
    world.app.events.subscribe(told.append, (MessagesRedriven,))
    world.answers = {"a": Dead("x"), "b": Dead("y")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish_many(conn, [Draft("a"), Draft("b"), Draft("a"), Draft("a")])
        await step.tick("outbox")
        world.answers = {}
        with pytest.raises(InvalidOption):
            await world.app.outbox.aredrive(actor="ada")
        assert await world.app.outbox.aredrive(2, actor="ada", note="fixed") == {2: False}
        assert await world.app.outbox.aredrive(2, actor="ada") == {}
        assert await world.app.outbox.aredrive(topic="a", actor="ada", rate=0.5) == {1: False, 3: False, 4: False}
        assert [(event.count, event.actor) for event in told] == [(1, "ada"), (3, "ada")]
        assert (await step.tick("outbox")).claimed == 2
        step.advance(timedelta(seconds=2))
        assert (await step.tick("outbox")).claimed == 1
        detail = await world.app.outbox.aget(2)
        assert [(each.outcome, each.error_type, each.error_message) for each in detail.history] == [
            ("dead", "Dead", "x" if detail.row.topic == "a" else "y"),
            ("redriven", "ada", "fixed"),
        ]
        assert detail.row.state == "delivered"
        with pytest.raises(UnknownMessage):
            await world.app.outbox.aget(99)


async def test_a_message_is_redriven_by_its_number_or_its_id(migrated, conn):
    world = World(migrated)
    world.answers = {"a": Dead("x")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish_many(conn, [Draft("a", message_id=f"m{n}") for n in range(4)])
        await step.tick("outbox")
        assert await world.app.outbox.aredrive("m1", 1, actor="ada") == {1: False, 2: False}
        assert await world.app.outbox.aredrive("m3", actor="ada") == {4: False}
        assert await world.app.outbox.aredrive("m1", "unknown", actor="ada") == {}
        assert await states(conn) == ["pending", "pending", "dead", "pending"]


async def test_wrong_questions_are_refused_in_words(migrated):
    outbox = World(migrated).app.outbox
    for wrong in ({"rate": 0}, {"rate": "fast"}, {"limit": 0}):
        with pytest.raises(InvalidOption):
            await outbox.aredrive(everything=True, actor="ada", **wrong)
    with pytest.raises(InvalidOption):
        await outbox.aredrive(None, actor="ada")
    with pytest.raises(InvalidOption, match="needs_review"):
        await outbox.alist(state="bogus")
    with pytest.raises(InvalidOption):
        await outbox.afind_pending(limit=-1)


async def test_what_retries_is_counted_also_while_it_is_ready(migrated, conn):
    world = World(migrated)
    world.answers = {"a": Retry(timedelta(0))}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish(conn, "a", {})
        await step.tick("outbox")
        [stats] = await world.app.outbox.astats()
        assert (stats.ready, stats.retrying) == (1, 1)


async def test_the_blocking_twins_answer_the_same(migrated, conn):
    app = World(migrated).app
    await app.outbox.apublish(conn, "a", {}, message_id="m")

    def ask() -> list:
        with app:
            outbox = app.outbox
            found = [outbox.find_pending(), outbox.find_retry_ready(), outbox.list(), outbox.get("m").row.id]
            found += [outbox.stats()[0].ready, outbox.doctor(), outbox.redrive("m", actor="ada")]
            return [*found, outbox.park("a", actor="ada"), outbox.park("never", actor="ada", parked=False)]

    pending, retrying, listed, number, *rest = await asyncio.to_thread(ask)
    assert ([row.message_id for row in pending], retrying, listed, number) == (["m"], [], pending, 1)
    assert rest == [1, [], {}, True, False]


async def test_a_redriven_message_says_that_it_comes_out_of_order(migrated, conn):
    world = World(migrated)
    world.answers = {"bad": Dead("x")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish_many(conn, [Draft("bad", key="k"), Draft("good", key="k")])
        await step.tick("outbox")
        assert await world.app.outbox.aredrive(1, actor="ada") == {1: True}
        assert await conn.fetchval("SELECT out_of_order FROM interlock.outbox WHERE id = 1")


async def test_a_redriven_message_is_out_of_order_also_while_a_later_one_is_in_hand(migrated, conn):
    """That one may be with the receiver already; one that only waits comes after it."""
    world = World(migrated)
    world.answers = {"bad": Dead("x")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish_many(conn, [Draft("bad", key="in hand"), Draft("bad", key="waits")])
        await step.tick("outbox")
        await world.app.outbox.apublish_many(conn, [Draft("good", key="in hand"), Draft("good", key="waits")])
        await conn.execute("UPDATE interlock.outbox SET claim_token = gen_random_uuid(), claims = 1 WHERE id = 3")
        assert await world.app.outbox.aredrive(everything=True, actor="ada") == {1: True, 2: False}


async def test_a_parked_topic_waits_until_it_is_unparked(migrated, conn):
    world = World(migrated)
    told = []
    world.app.events.subscribe(told.append, (TopicParked,))
    async with stepper(world.app) as step:
        assert await world.app.outbox.apark("a", actor="ada")
        assert not await world.app.outbox.apark("a", actor="bob")
        await world.app.outbox.apublish(conn, "a", {})
        assert (await step.tick("outbox")).claimed == 0
        [stats] = await world.app.outbox.astats()
        assert (stats.topic, stats.ready, stats.parked, stats.parked_by) == ("a", 1, True, "ada")
        assert await world.app.outbox.apark("a", actor="ada", parked=False)
        assert (await step.tick("outbox")).claimed == 1
        assert [event.parked for event in told] == [True, False]
        with pytest.raises(InvalidOption, match="not a pattern"):  # it would park nothing that is ever published
            await world.app.outbox.apark("a.*", actor="ada")


async def test_the_doctor_finds_each_sign_of_trouble(migrated, conn):
    world = World(migrated)
    world.answers = {"dead": Dead("x"), "slow": Throttled(HOUR, "slow down"), "mixed": Delivered("r")}
    async with stepper(world.app) as step:
        assert await world.app.outbox.adoctor() == []
        await world.app.outbox.apublish_many(conn, [Draft("dead"), Draft("slow"), Draft("mixed")])
        await step.tick("outbox")
        world.answers["mixed"] = None
        await world.app.outbox.apublish_many(conn, [Draft("mixed"), Draft("old")])
        await conn.execute("UPDATE interlock.outbox SET available_at = now() - interval '1 day' WHERE topic = 'old'")
        await world.app.outbox.apark("parked", actor="ada")
        await world.app.outbox.apark("old", actor="ada")
        await step.tick("outbox")
        await world.app.outbox.apark("old", actor="ada", parked=False)
        await conn.execute(
            "INSERT INTO interlock.outbox_attempt (outbox_id, topic, attempt, outcome, record_id)"
            " SELECT 3, 'mixed', 1, 'stale', 'another' FROM generate_series(1, 20)"
        )
        found = {finding.check: finding for finding in await world.app.outbox.adoctor(expected_workers=3)}
        assert found["parked"].advice == "interlock outbox unpark parked"
        expected = {"workers", "review", "throttled", "no_record", "oldest_ready", "parked", "stale", "two_records"}
        assert set(found) == expected
        assert "1 live workers" in found["workers"].found
        assert all(finding.advice for finding in found.values())


async def test_a_running_server_tells_what_the_doctor_would_find_when_it_begins(migrated, conn):
    world = World(migrated, outbox_expected_workers=1)
    world.answers = {"dead": Dead("x")}
    told = []
    world.app.events.subscribe(lambda event: told.append((event.check, event.place)), (OutboxFinding,))
    async with stepper(world.app) as step:
        watch = OutboxWatch(
            await world.app.adatabase(), world.app.settings.outbox, emit=world.app.events.emit, clock=world.app.clock
        )
        assert await watch.tick() == timedelta(minutes=1)
        await world.app.outbox.apublish(conn, "dead", {})
        await step.tick("outbox")
        await watch.tick()
        await watch.tick()
        assert told == [("review", "dead")]
        await world.app.outbox.apark("other", actor="ada")
        await world.app.outbox.aredrive(1, actor="ada")
        await watch.look()
        assert told == [("review", "dead"), ("parked", "other")]
        await step.tick("outbox")
        await watch.look()
        assert told[2:] == [("review", "dead")]
        assert "workers" in {finding.check for finding in await world.app.outbox.adoctor(expected_workers=7)}


async def test_what_was_delivered_long_ago_goes_and_what_waits_for_a_person_stays(migrated, conn):
    world = World(migrated)
    world.answers = {"dead": Dead("x")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish_many(conn, [Draft("dead"), Draft("fine")])
        await world.app.inbox.aonce(conn, "c", "m")
        await step.tick("outbox")
        database, settings = await world.app.adatabase(), world.app.settings.outbox
        retention = OutboxRetention(database, settings, interval=HOUR, clock=world.app.clock)
        assert await retention.tick() == HOUR
        assert await states(conn) == ["dead", "delivered"]
        step.advance(timedelta(days=8))
        await retention.tick()
        assert await states(conn) == ["dead"]
        assert await conn.fetchval("SELECT count(*) FROM interlock.inbox") == 0


async def test_a_redrive_is_out_of_order_also_when_what_came_later_is_deleted_already(migrated, conn):
    world = World(migrated)
    world.answers = {"bad": Dead("x")}
    async with stepper(world.app) as step:
        drafts = [Draft("bad", key="overtaken"), Draft("good", key="overtaken"), Draft("good", key="last")]
        await world.app.outbox.apublish_many(conn, [*drafts, Draft("bad", key="last"), Draft("bad", key="alone")])
        await step.tick("outbox")
        step.advance(timedelta(days=8))
        database, settings = await world.app.adatabase(), world.app.settings.outbox
        await OutboxRetention(database, settings, interval=HOUR, clock=world.app.clock).tick()
        assert await states(conn) == ["dead"] * 3
        redriven = await world.app.outbox.aredrive(everything=True, actor="ada")
        assert redriven == {1: True, 4: False, 5: False}


async def test_a_disabled_drain_delivers_nothing_and_is_no_worker(migrated, conn):
    world = World(migrated, outbox_enabled=False)
    async with world.app.running(["outbox"]) as keeper:
        assert keeper.profile.roles == ()


async def test_an_idle_drain_is_woken_by_the_publishing_transaction(migrated, conn):
    world = World(migrated, outbox_polling_interval=HOUR)
    async with world.app.running(["outbox"]):
        await world.app.outbox.apublish(conn, "first", {})
        await eventually(lambda: len(world.calls) == 1, 60)
        async with conn.transaction():
            await world.app.outbox.apublish(conn, "second", {})
        await eventually(lambda: len(world.calls) == 2, 60)
        world.answers = {"third": Retry(timedelta(milliseconds=100))}
        await world.app.outbox.apublish(conn, "third", {})
        await eventually(lambda: len(world.calls) >= 4, 60, "the retry, in time")


async def test_a_burst_of_one_topic_beside_a_message_of_another_is_drained_without_a_pause(migrated, conn):
    """Each gets its share of a batch, so the first batch is no full one although much more is due."""
    world = World(migrated, outbox_polling_interval=HOUR)
    async with world.app.running(["outbox"]):
        await world.app.outbox.apublish(conn, "first", {})
        await eventually(lambda: len(world.calls) == 1, 60)
        await world.app.outbox.apublish_many(conn, [*[Draft("many")] * 500, Draft("one")])
        await eventually(lambda: len(world.calls) == 502, 60)


async def test_a_stop_gives_back_what_waits_and_settles_what_runs(migrated, conn):
    app = Interlock(migrated, outbox_concurrency=1)
    running, go_on = asyncio.Event(), asyncio.Event()

    @app.outbox.emitter("*")
    async def send(message):
        running.set()
        await go_on.wait()

    async with app.running(["outbox"]):
        await app.outbox.apublish_many(conn, [Draft("a") for _ in range(10)])
        await asyncio.wait_for(running.wait(), 60)
        asyncio.get_running_loop().call_later(0.1, go_on.set)
    rows = await conn.fetch("SELECT state, claims, claim_token, crashes FROM interlock.outbox ORDER BY id")
    assert [tuple(row) for row in rows] == [("delivered", 1, None, 0), *[("pending", 0, None, 0)] * 9]


async def test_a_viewer_neither_redrives_nor_parks(migrated, conn):
    world, viewer = World(migrated), Actor("eve", permissions=VIEWER)
    world.answers = {"a": Dead("x")}
    async with stepper(world.app) as step:
        await world.app.outbox.apublish(conn, "a", {})
        await step.tick("outbox")
        with pytest.raises(NotPermitted, match="resolve"):
            await world.app.outbox.aredrive(1, actor=viewer)
        with pytest.raises(NotPermitted, match="pause"):
            await world.app.outbox.apark("a", actor=viewer)
        assert await states(conn) == ["dead"]
        assert await conn.fetchval("SELECT count(*) FROM interlock.audit") == 0
