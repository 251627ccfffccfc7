"""Why a message is not delivered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock import Backoff, Dead, Delivered, Interlock, Retry
from interlock.errors import UnknownMessage
from interlock.operate.blockers import Code
from interlock.outbox.breaker import FAILURES
from tests.harness.processes import ROOT
from tests.harness.waiting import eventually


@pytest.fixture
def publish(station):
    async def published(topic: str = "mail", **options) -> int:
        await station.app.outbox.apublish(station.conn, topic, {"n": 1}, **options)
        return await station.conn.fetchval("SELECT max(id) FROM interlock.outbox")

    return published


async def test_without_a_server_that_has_the_role_nothing_is_delivered(station, publish):
    await station.client()
    message = await publish(message_id="m1")
    for name in (message, "m1"):
        assert await station.codes(f"message:{name}") == ["NO_DRAIN"]
    assert (await station.standing("message:m1")).startswith(f"message {message} (mail) waits since")


async def test_a_topic_that_no_server_emits_and_a_partition_that_none_delivers_are_named(station, publish):
    station.opened(outbox_partitions=("eu", "us"), outbox_topics=("order.*",))

    @station.app.outbox.emitter("*")
    async def rest(message):
        pass

    @station.app.outbox.emitter("order.*")
    async def send(message):
        pass

    await station.server()
    known = f"message:{await publish('order.paid', partition='eu')}"
    assert await station.codes(known) == []
    why = await station.why(f"message:{await publish('invoice.paid', partition='eu')}")
    assert list(why) == ["NO_DRAIN"]
    assert why["NO_DRAIN"].evidence.startswith(
        "none of the 1 live servers that deliver has an emitter for the topic in"
    )
    for partition, named in (("asia", "the partition asia"), (None, "messages without a partition")):
        why = await station.why(f"message:{await publish('order.paid', partition=partition)}")
        assert why["NO_DRAIN"].evidence.endswith(f"delivers {named}")
    await station.conn.execute("UPDATE interlock.server SET tags = '{}'")  # as of code that does not tell
    assert await station.codes(f"message:{await publish('invoice.paid')}") == []


async def test_a_delay_and_a_parked_topic_are_named_with_what_helps(station, publish):
    await station.client()
    message = await publish(delay=timedelta(hours=1))
    await station.app.outbox.apark("mail", actor="ada")
    why = await station.why(f"message:{message}")
    assert list(why) == ["SCHEDULED_LATER", "TOPIC_PARKED", "NO_DRAIN"]
    assert "by ada" in why["TOPIC_PARKED"].evidence
    assert why["TOPIC_PARKED"].command == "interlock outbox unpark mail"


async def test_a_receiver_that_fails_again_and_again_is_told_by_the_breaker_of_its_topic(station, publish):
    tried = []

    @station.app.outbox.emitter("mail", backoff=Backoff(timedelta(hours=1)))
    async def send(message):
        tried.append(message.message_id)
        raise ConnectionError("refused")

    async def opened() -> bool:
        return await station.codes(f"message:{await publish()}") == ["BREAKER_OPEN"]

    async def waits() -> bool:
        return await station.codes(f"message:{tried[0]}") == ["RETRY_BACKOFF", "BREAKER_OPEN"]

    async with station.app.running(["outbox"]):
        for _ in range(FAILURES):
            await publish()
        await eventually(opened, what="the breaker")
        await eventually(waits, what="the backoff of the first attempt")
        why = await station.why(f"message:{tried[0]}")
        assert why["BREAKER_OPEN"].details["breaker"] == "open"
        assert "the receiver of mail failed too often; one message is tried" in why["BREAKER_OPEN"].evidence


async def test_a_failed_attempt_waits_and_one_that_gave_up_asks_for_a_person(station, publish):
    answers = [Retry(timedelta(minutes=5)), Dead("rejected"), Delivered()]

    @station.app.outbox.emitter("mail")
    async def send(message):
        return answers.pop(0)

    await station.server()
    message = await publish()
    await station.ticks("outbox")
    assert await station.codes(f"message:{message}") == ["RETRY_BACKOFF"]
    station.step.advance(timedelta(minutes=6))
    await station.ticks("outbox")
    why = await station.why(f"message:{message}")
    assert list(why) == ["MESSAGE_GAVE_UP"]
    assert why["MESSAGE_GAVE_UP"].command == f"interlock outbox redrive {message}"
    await station.app.outbox.aredrive(message, actor="ada")
    await station.ticks("outbox")
    assert await station.codes(f"message:{message}") == []
    assert "is delivered" in await station.standing(f"message:{message}")


async def test_where_order_is_kept_the_message_that_is_tried_again_first_is_named(station, publish):
    station.opened(outbox_mode="ordered")

    @station.app.outbox.emitter("mail")
    async def send(message):
        raise Retry(timedelta(minutes=5))

    await station.server()
    first, second = await publish(key="order:1"), await publish(key="order:1")
    await station.ticks("outbox")
    why = await station.why(f"message:{second}")
    assert list(why) == ["BEHIND_ITS_KEY"]
    assert why["BEHIND_ITS_KEY"].command == f"interlock explain message:{first}"
    assert await station.codes(f"message:{first}") == ["RETRY_BACKOFF"]
    async with Interlock(station.dsn) as shell:  # without the settings of the servers
        assert "BEHIND_ITS_KEY" in [each.code for each in (await shell.aexplain(f"message:{second}")).blockers]


async def test_the_rest_of_a_key_waits_for_the_message_that_gave_up_until_it_is_redriven(station, publish):
    station.opened(outbox_mode="ordered")
    answers = [Dead("rejected"), Delivered(), Delivered()]

    @station.app.outbox.emitter("mail")
    async def send(message):
        return answers.pop(0)

    await station.server()
    first = await publish(key="order:1")
    await station.ticks("outbox")
    second = await publish(key="order:1")
    why = await station.why(f"message:{second}")
    assert list(why) == ["BEHIND_ITS_KEY"]
    assert why["BEHIND_ITS_KEY"].command == f"interlock outbox redrive {first}"
    assert await station.codes(f"message:{first}") == ["MESSAGE_GAVE_UP"]
    await station.app.outbox.aredrive(first, actor="ada")
    await station.ticks("outbox")
    assert "is delivered" in await station.standing(f"message:{second}")


async def test_a_key_that_goes_on_behind_a_dead_message_is_not_called_blocked_by_it(station, publish):
    station.opened(outbox_mode="ordered")

    @station.app.outbox.emitter("mail", on_dead="continue")
    async def send(message):
        return Dead("rejected")

    await station.server()
    await publish(key="order:1")
    await station.ticks("outbox")
    second, third = await publish(key="order:1"), await publish(key="order:1")
    assert await station.codes(f"message:{second}") == []
    why = await station.why(f"message:{third}")
    assert list(why) == ["BEHIND_ITS_KEY"]
    assert why["BEHIND_ITS_KEY"].command == f"interlock explain message:{second}"


async def test_where_no_order_is_kept_no_message_is_behind_another(station, publish):
    await station.client()
    await publish(key="order:1")
    assert await station.codes(f"message:{await publish(key='order:1')}") == ["NO_DRAIN"]


async def test_an_unknown_message_is_named(station):
    await station.client()
    with pytest.raises(UnknownMessage, match="4711"):
        await station.app.aexplain("message:4711")


@pytest.mark.parametrize("code", Code)
def test_every_code_has_its_situation_on_a_real_database(code):
    folder = ROOT / "tests" / "integration" / "operate" / "explain"
    assert any(f'"{code}"' in file.read_text("utf-8") for file in folder.glob("test_*.py"))
