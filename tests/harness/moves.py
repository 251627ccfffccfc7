"""Every database of the tests refuses a change of state that the state machines do not declare.

So each test, whatever it is about, also proves that only declared moves happen.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from interlock.model.lifecycle import MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    import asyncpg

_FUNCTION = """
CREATE SCHEMA IF NOT EXISTS test_guard;
CREATE OR REPLACE FUNCTION test_guard.refuse_undeclared_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF old.state <> new.state AND NOT coalesce((tg_argv[0]::jsonb -> old.state::text) ? new.state::text, false) THEN
        RAISE EXCEPTION 'undeclared move of %: % -> %', tg_table_name, old.state, new.state;
    END IF;
    RETURN new;
END $$;
"""
_TRIGGER = """
CREATE OR REPLACE TRIGGER refuse_undeclared_move BEFORE UPDATE OF state ON "{schema}"."{table}"
FOR EACH ROW EXECUTE FUNCTION test_guard.refuse_undeclared_move('{moves}')
"""


async def refuse_undeclared_moves(conn: asyncpg.Connection, schema: str) -> None:
    """Guard every table of the schema that has a state machine; later migrations may bring the others."""
    for table, machine in MACHINES.items():
        if await conn.fetchval("SELECT to_regclass($1)", f'"{schema}"."{table}"') is not None:
            await guard_table(conn, schema, table, machine.moves)


async def guard_table(conn: asyncpg.Connection, schema: str, table: str, moves: Mapping[str, AbstractSet[str]]) -> None:
    """Let the rows of this table make these moves only."""
    declared = json.dumps({str(state): sorted(map(str, targets)) for state, targets in moves.items()})
    await conn.execute(_FUNCTION)
    await conn.execute(_TRIGGER.format(schema=schema, table=table, moves=declared.replace("'", "''")))
