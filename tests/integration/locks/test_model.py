"""One model of lock slots, against which every service is played."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from interlock.locks.memory import MemoryLocks
from interlock.locks.postgres import PostgresLocks
from interlock.locks.redis import RedisLocks
from interlock.model.lease import Grant, Held, SlotRequest
from interlock.store.database import Database
from interlock.store.settings import StoreSettings
from tests.harness.valkey import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

TTL = timedelta(minutes=5)
names = count()
small = st.integers(1, 5)


class Memory:
    def __init__(self) -> None:
        self.locks = MemoryLocks()

    async def expire(self, name: str, slot: int) -> None:
        self.locks._names[name][slot].until = 0

    async def close(self) -> None:
        await self.locks.close()


class Postgres:
    def __init__(self, dsn: str) -> None:
        self._dsn, self._database = dsn, Database(dsn, StoreSettings())
        self.locks = PostgresLocks(self._database, "model")

    async def expire(self, name: str, slot: int) -> None:
        conn = await asyncpg.connect(self._dsn)
        sql = "UPDATE interlock.lock_slot SET expires_at = now() - interval '1 s' WHERE name = $1 AND slot = $2"
        await conn.execute(sql, name, slot)
        await conn.close()

    async def close(self) -> None:
        await self.locks.close()
        await self._database.close()


class Redis:
    def __init__(self, url: str) -> None:
        self._port = int(url.rsplit(":", 1)[1].split("/", maxsplit=1)[0])
        self._database = url.rsplit("/", 1)[1]
        self.locks = RedisLocks(url, "model")

    async def expire(self, name: str, slot: int) -> None:
        ask(self._port, f"SELECT {self._database}", f"DEL interlock:model:{{{name}}}:slot:{slot}")

    async def close(self) -> None:
        await self.locks.close()


@dataclass
class Owned:
    token: UUID
    slots: int
    fence: int


class Slots(RuleBasedStateMachine):
    open_service: Callable[[], Any]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.name = f"n{next(names)}"
        self.held: dict[int, Owned] = {}
        self.gone: list[tuple[int, UUID]] = []
        self.fences: dict[int, int] = {}
        self.numbers: set[int] = set()
        self.service = self.runs(self._open())

    async def _open(self):
        return self.open_service()

    def runs(self, work):
        return self.runner.run(work)

    def lose(self, slot: int) -> None:
        self.gone.append((slot, self.held.pop(slot).token))

    def one_held(self, data) -> int | None:
        return data.draw(st.sampled_from(sorted(self.held))) if self.held else None

    @rule(slots=small, start=st.integers(0, 4))
    def acquire(self, slots: int, start: int) -> None:
        start, token = start % slots, uuid4()
        self.numbers.add(slots)
        asked = SlotRequest(name=self.name, slots=slots, ttl=TTL, token=token, owner="model", start=start)
        answer = self.runs(self.service.locks.acquire(asked))
        bound = min([slots, *(owned.slots for owned in self.held.values())])
        order = [(start + step) % slots for step in range(slots)]
        free = [slot for slot in order if slot < bound and slot not in self.held]
        if len(self.held) >= bound or not free:
            assert not isinstance(answer, Grant)
            return
        # A slot that is offered to another N may be passed over while there is one that is offered to this.
        assert answer.slot in (free if len(self.numbers) > 1 else free[:1])
        assert answer.fence > self.fences.get(answer.slot, 0)
        self.fences[answer.slot] = answer.fence
        self.held[answer.slot] = Owned(token, slots, answer.fence)

    @rule(data=st.data())
    def release(self, data) -> None:
        if (slot := self.one_held(data)) is not None:
            token = self.held[slot].token
            assert self.runs(self.service.locks.release(self.name, token, timedelta(0)))
            self.lose(slot)

    @rule(data=st.data())
    def expire(self, data) -> None:
        if (slot := self.one_held(data)) is not None:
            self.runs(self.service.expire(self.name, slot))
            self.lose(slot)

    @rule(data=st.data())
    def force_release(self, data) -> None:
        slot = data.draw(st.integers(0, 4))
        freed = self.runs(self.service.locks.force_release(self.name, slot))
        assert (freed is not None) == (slot in self.held)
        if freed is not None:
            assert freed.fence == self.held[slot].fence
            self.lose(slot)

    @rule()
    def extend_all_and_some_that_are_gone(self) -> None:
        wanted = [*((slot, owned.token) for slot, owned in self.held.items()), *self.gone[-3:]]
        held = [Held(self.name, slot, token, TTL) for slot, token in wanted]
        answers = self.runs(self.service.locks.extend(held)) if held else {}
        assert set(answers) == {owned.token for owned in self.held.values()}

    @rule()
    def what_is_gone_cannot_be_released(self) -> None:
        for _, token in self.gone[-3:]:
            assert not self.runs(self.service.locks.release(self.name, token, timedelta(0)))

    @invariant()
    def the_holders_are_those_of_the_model(self) -> None:
        found = {each.slot: each.fence for each in self.runs(self.service.locks.holders(self.name))}
        assert found == {slot: owned.fence for slot, owned in self.held.items()}

    def teardown(self) -> None:
        self.runs(self.service.close())
        self.runner.close()


def play(open_service, examples: int) -> None:
    health = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    chosen = settings(max_examples=examples, stateful_step_count=15, deadline=None, suppress_health_check=health)
    played = type("Played", (Slots,), {"open_service": staticmethod(open_service)})
    run_state_machine_as_test(played, settings=chosen)


def test_memory_plays_like_the_model():
    play(Memory, 40)


def test_postgres_plays_like_the_model(module_database):
    play(lambda: Postgres(module_database), 10)


def test_redis_plays_like_the_model(each_lock_server_url):
    play(lambda: Redis(each_lock_server_url), 10)


@pytest.mark.slow
def test_postgres_plays_like_the_model_at_length(module_database):
    play(lambda: Postgres(module_database), 150)


@pytest.mark.slow
def test_redis_plays_like_the_model_at_length(each_lock_server_url):
    play(lambda: Redis(each_lock_server_url), 150)


def test_control_a_service_that_extends_what_is_gone_is_found_out():
    class Lenient(MemoryLocks):
        async def extend(self, held):
            return {each.token: each.ttl for each in held}

    class Wrong(Memory):
        def __init__(self) -> None:
            self.locks = Lenient()

    with pytest.raises(AssertionError):
        play(Wrong, 2_000)  # it stops at the first difference
