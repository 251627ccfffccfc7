from __future__ import annotations

import pytest

from interlock.errors import UnsupportedConnection
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import Call, run, run_blocking
from interlock.store.sql import compile_statement

STATEMENT = compile_statement("test/one", "select :number", "interlock")


class Echo:
    """Answers every call with its own values."""

    in_transaction = False

    def fetch(self, call):
        return [call.values]


class AsyncEcho(Echo):
    async def fetch(self, call):
        return super().fetch(call)


def sum_of_two(closed):
    try:
        first = yield Call(STATEMENT, {"number": 1})
        second = yield Call(STATEMENT, {"number": first[0]["number"] + 1})
    finally:
        closed.append(True)
    return first[0]["number"] + second[0]["number"]


async def test_the_same_steps_run_on_either_kind_of_connection():
    closed = []
    assert run_blocking(Echo(), sum_of_two(closed)) == 3
    assert await run(AsyncEcho(), sum_of_two(closed)) == 3
    assert len(closed) == 2


class Broken(Echo):
    def fetch(self, call):
        raise OSError(f"the line is cut before {call.statement.name}")


def test_steps_end_with_what_the_connection_raised():
    closed = []
    with pytest.raises(OSError, match="cut"):
        run_blocking(Broken(), sum_of_two(closed))
    assert closed


@pytest.mark.parametrize("conn", [object(), None, "postgresql://somewhere"])
def test_what_is_no_connection_is_refused_by_its_type(conn):
    for choose in (adapt, adapt_blocking):
        with pytest.raises(UnsupportedConnection) as refused:
            choose(conn)
        assert type(conn).__qualname__ in refused.value.found


def test_the_wrong_kind_of_connection_is_told_its_twin():
    blocking = type("Connection", (), {"__module__": "psycopg"})()
    awaited = type("AsyncConnection", (), {"__module__": "psycopg"})()
    with pytest.raises(UnsupportedConnection, match="blocking twin"):
        adapt(blocking)
    with pytest.raises(UnsupportedConnection, match="async twin"):
        adapt_blocking(awaited)


def test_a_pool_is_told_to_hand_over_one_of_its_connections():
    pool = type("Pool", (), {"__module__": "asyncpg.pool"})()
    for choose in (adapt, adapt_blocking):
        with pytest.raises(UnsupportedConnection, match="take one of the pool"):
            choose(pool)


def test_a_class_of_the_users_own_is_known_by_what_it_derives_from():
    base = type("Connection", (), {"__module__": "psycopg"})
    assert adapt_blocking(type("Audited", (base,), {"__module__": "shop"})())
