"""Why a message is not delivered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock import Dead, Delivered, Retry
from interlock.errors import UnknownMessage
from interlock.operate.blockers import Code
from tests.harness.processes import ROOT


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


async def test_a_delay_a_parked_topic_and_an_open_breaker_are_named_with_what_helps(station, publish):
    await station.client()
    message = await publish(delay=timedelta(hours=1))
    await station.app.outbox.apark("mail", actor="ada")
    await station.conn.execute(
        "UPDATE interlock.outbox_topic SET breaker = 'open', probe_at = now() + interval '1 minute', opened_at = now()"
    )
    why = await station.why(f"message:{message}")
    assert list(why) == ["SCHEDULED_LATER", "TOPIC_PARKED", "BREAKER_OPEN", "NO_DRAIN"]
    assert "by ada" in why["TOPIC_PARKED"].evidence
    assert why["TOPIC_PARKED"].command == "interlock outbox unpark mail"


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


async def test_where_order_is_kept_the_message_that_comes_first_is_named(station, publish):
    station.opened(outbox_mode="ordered")
    await station.client()
    first, second = await publish(key="order:1"), await publish(key="order:1")
    why = await station.why(f"message:{second}")
    assert list(why) == ["BEHIND_ITS_KEY", "NO_DRAIN"]
    assert why["BEHIND_ITS_KEY"].command == f"interlock explain message:{first}"
    await station.conn.execute("UPDATE interlock.outbox SET state = 'dead', ended_at = now() WHERE id = $1", first)
    assert (await station.why(f"message:{second}"))["BEHIND_ITS_KEY"].command == f"interlock outbox redrive {first}"
    assert "BEHIND_ITS_KEY" not in await station.why(f"message:{first}")
    station.opened(outbox_mode="claim")
    await station.client()
    assert await station.codes(f"message:{second}") == ["NO_DRAIN"]


async def test_an_unknown_message_is_named(station):
    await station.client()
    with pytest.raises(UnknownMessage, match="4711"):
        await station.app.aexplain("message:4711")


@pytest.mark.parametrize("code", Code)
def test_every_code_has_its_situation_on_a_real_database(code):
    folder = ROOT / "tests" / "integration" / "operate" / "explain"
    assert any(f'"{code}"' in file.read_text("utf-8") for file in folder.glob("test_*.py"))
