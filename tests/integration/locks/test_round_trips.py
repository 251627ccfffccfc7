"""What a try costs: one round trip, however many slots there are and whether one is free or not."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from interlock.model.lease import Grant, Refusal
from interlock.store.database import Database
from tests.harness.valkey import server_binaries
from tests.integration.locks.conftest import request

SLOTS = 50
SERVICES = ["postgres", server_binaries()[0].name]


@pytest.fixture
def questions(monkeypatch) -> list[str]:
    """What is sent to PostgreSQL or Redis, one entry for each time that somebody waits for an answer."""
    sent: list[str] = []
    connect, ask = Database.connect, Redis.execute_command

    async def connect_and_listen(database, purpose):
        conn = await connect(database, purpose)
        conn.add_query_logger(lambda record: sent.append(record.query))
        return conn

    async def ask_and_note(client, *words, **options):
        sent.append(str(words[0]))
        return await ask(client, *words, **options)

    monkeypatch.setattr(Database, "connect", connect_and_listen)
    monkeypatch.setattr(Redis, "execute_command", ask_and_note)
    return sent


async def cost(backend, questions, asked) -> tuple[Grant | Refusal, int]:
    await asyncio.sleep(0.01)  # a log of what was sent before may be on its way
    questions.clear()
    answer = await backend.acquire(asked)
    await asyncio.sleep(0.01)
    return answer, len(questions)


@pytest.mark.parametrize("open_backend", SERVICES, indirect=True)
async def test_fifty_slots_that_are_all_taken_cost_one_round_trip_and_so_does_a_free_one(backend, questions):
    for start in range(SLOTS):
        assert isinstance(await backend.acquire(request(slots=SLOTS, start=start)), Grant)
    refused, trips = await cost(backend, questions, request(slots=SLOTS))
    assert (type(refused), trips) == (Refusal, 1)
    assert await backend.force_release("x", 7)
    granted, trips = await cost(backend, questions, request(slots=SLOTS))
    assert (granted.slot, trips) == (7, 1)


@pytest.mark.parametrize("open_backend", SERVICES, indirect=True)
async def test_control_a_try_for_each_slot_costs_as_many(backend, questions):
    for slot in range(SLOTS):
        await backend.acquire(request(f"x:slot:{slot}"))
    await asyncio.sleep(0.01)
    questions.clear()
    for slot in range(SLOTS):
        assert isinstance(await backend.acquire(request(f"x:slot:{slot}")), Refusal)
    await asyncio.sleep(0.01)
    assert len(questions) == SLOTS
