"""The one place where the tests meet the migrations."""

from __future__ import annotations

import asyncpg

from tests.harness.moves import refuse_undeclared_moves

SCHEMA = "interlock"


async def apply_schema(dsn: str) -> None:
    """Bring an empty database to the newest schema, and let it refuse undeclared moves."""
    from interlock.store.migrate import apply

    conn = await asyncpg.connect(dsn)
    try:
        await apply(conn, SCHEMA)
        await refuse_undeclared_moves(conn, SCHEMA)
    finally:
        await conn.close()
