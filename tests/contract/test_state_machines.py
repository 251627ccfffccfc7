"""The tables and the SQL guards keep to the state machines of the model."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest

from interlock.model.lifecycle import MACHINES, SERVER, ServerState
from interlock.model.server import ServerProfile
from interlock.store.server import Servers
from interlock.store.sql import Catalog

CHECKS = """
SELECT pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = to_regclass($1) AND contype = 'c'
  AND conkey = (SELECT array_agg(attnum) FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'state')
"""
SERVERS = Servers(Catalog("interlock"))
VERBS = {
    "renew": lambda conn, one, _: SERVERS.renew_if_held(conn, one),
    "drain": lambda conn, one, _: SERVERS.drain_if_alive(conn, one),
    "leave": lambda conn, one, _: SERVERS.leave_if_draining(conn, one),
    "mark_lost": lambda conn, _, judge: SERVERS.mark_lost(conn, judge),
}
MOVES = {
    ("alive", "drain"): "draining",
    ("alive", "mark_lost"): "lost",
    ("draining", "leave"): "gone",
    ("draining", "mark_lost"): "lost",
}


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


async def tables_with_a_state(conn: asyncpg.Connection) -> set[str]:
    rows = await conn.fetch(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'interlock' AND column_name = 'state'"
    )
    return {row["table_name"] for row in rows}


async def test_each_tables_check_names_exactly_the_states_of_its_machine(conn):
    tables = await tables_with_a_state(conn)
    assert {"server", "work_queue", "execution", "dead_letter"} <= tables <= set(MACHINES)
    for table in tables:
        [definition] = [row[0] for row in await conn.fetch(CHECKS, f"interlock.{table}")]
        assert set(re.findall(r"'(\w+)'", definition)) == set(MACHINES[table].states), table


async def test_every_table_with_a_state_refuses_undeclared_moves_in_the_tests(conn):
    guarded = await conn.fetch(
        "SELECT relname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE tgname = 'refuse_undeclared_move'"
    )
    assert {row["relname"] for row in guarded} == await tables_with_a_state(conn)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_a_machine_moves_only_between_its_own_states_and_ends_somewhere(machine):
    mentioned = set(machine.moves) | {state for targets in machine.moves.values() for state in targets}
    assert mentioned == set(machine.states)
    assert machine.ended()


async def register(conn: asyncpg.Connection, state: ServerState, lease: float):
    """A row in this state from the start: no move leads there."""
    profile = ServerProfile(name=state, host="h", pid=1, version="0")
    await SERVERS.register(conn, id := uuid4(), profile, timedelta(seconds=lease))  # noqa: A001  the row's own word
    await conn.execute(
        "WITH old AS (DELETE FROM interlock.server WHERE id = $1 RETURNING *)"
        " INSERT INTO interlock.server SELECT (jsonb_populate_record(old::interlock.server,"
        " jsonb_build_object('state', $2::text, 'lease_until', now() - interval '1 s'))).* FROM old",
        id,
        state,
    )
    return id


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", ServerState)
async def test_a_verb_changes_a_server_only_along_declared_moves(conn, state, verb):
    await conn.execute("ALTER TABLE interlock.server DISABLE TRIGGER USER")
    one, judge = await register(conn, state, lease=0.001), await register(conn, ServerState.ALIVE, lease=60)
    await conn.execute(
        "UPDATE interlock.server SET steady_since = now() - interval '1 h', lease_until = now() + interval '1 h'"
        " WHERE id = $1",
        judge,
    )
    answer = await VERBS[verb](conn, one, judge)
    after = ServerState(await conn.fetchval("SELECT state FROM interlock.server WHERE id = $1", one))
    assert after == MOVES.get((state, verb), state)
    assert after is state or SERVER.allows(state, after)
    renewed = verb == "renew" and state not in SERVER.ended()
    assert bool(answer) is (after is not state or renewed)


def test_the_verbs_together_make_every_declared_move():
    made = {(ServerState(before), ServerState(after)) for (before, _), after in MOVES.items()}
    assert made == {(before, after) for before, targets in SERVER.moves.items() for after in targets}
