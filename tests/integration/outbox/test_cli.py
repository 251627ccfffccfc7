"""The outbox on the command line."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from interlock import Dead, Draft, Interlock
from interlock.testing import stepper
from tests.integration.cli.in_process import Console


async def deliver_some(dsn: str) -> None:
    app = Interlock(dsn)

    @app.outbox.emitter("bad")
    async def refuse(message):
        return Dead("nope", "not wanted")

    conn = await asyncpg.connect(dsn)
    async with stepper(app) as step:
        await app.outbox.apublish_many(conn, [Draft("bad", {"x": 1}, message_id="m1"), Draft("waits"), Draft("bad")])
        await step.tick("outbox")
    await conn.close()


@pytest.fixture
def console(monkeypatch, capsys, tmp_path, migrated):
    asyncio.run(deliver_some(migrated))
    console = Console(monkeypatch, capsys, tmp_path)
    console.always = ["--dsn", migrated]
    return console


def test_messages_are_listed_shown_redriven_and_parked(console):
    assert [row["topic"] for row in console.json("outbox", "list", "--state", "dead")] == ["bad", "bad"]
    shown = console.json("outbox", "show", "m1")
    assert (shown["id"], shown["payload"], shown["failure"]) == ("1", '{"x": 1}', "nope")
    assert console.json("outbox", "show", "1")["history"][0]["outcome"] == "dead"
    assert "not wanted" in console("outbox", "show", "m1").stdout
    assert console("outbox", "show", "nothing").exit_code == 3
    assert {row["topic"]: row["ready"] for row in console.json("outbox", "stats")} == {"bad": 0, "waits": 1}
    assert console("outbox", "redrive", "--yes").exit_code == 2
    assert console.json("outbox", "redrive", "--all", "--dry-run")["messages"] == ["1", "3"]
    assert console.json("outbox", "redrive", "m1", "--yes", "--actor", "ada")["messages"] == ["1"]
    assert console.json("outbox", "redrive", "--topic", "bad", "--yes")["messages"] == ["3"]
    assert console.json("outbox", "park", "bad", "--dry-run")["changed"]
    assert not console.json("outbox", "unpark", "bad", "--dry-run")["changed"]
    assert console.json("outbox", "park", "bad", "--actor", "ada")["changed"]
    assert not console.json("outbox", "park", "bad", "--dry-run")["changed"]
    assert not console.json("outbox", "park", "bad")["changed"]
    audit = [(row["actor"], row["action"], row["target"]) for row in console.json("audit", "list")]
    assert ("ada", "redrive", "1") in audit
    assert ("ada", "park", "bad") in audit
    assert not console.json("outbox", "unpark", "never")["changed"]
    assert "unparked bad" in console("outbox", "unpark", "bad").stdout


def test_the_doctor_ends_with_five_when_it_finds_something(console):
    said = console("outbox", "doctor", "--expect", "2")
    assert said.exit_code == 5
    assert "workers" in said.stdout
    assert "review" in said.stdout
    assert console("outbox", "redrive", "--all").exit_code == 2
