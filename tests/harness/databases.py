"""A database per test: made from a template in a few dozen milliseconds, dropped by force afterwards.

Everything here blocks and runs in a thread with its own event loop, so that fixtures serve plain and async tests alike.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.harness.schema import apply_schema
from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

TEMPLATE = "interlock_template"
_TEMPLATE_LOCK = 7_102_417
_numbers = count(1)
_with_template: set[str] = set()


def create(server: str, template: str = "template0") -> str:
    """The DSN of a new database. template0 takes no connections, so that nobody can be in the way of the copy."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return with_database(server, name)


def create_migrated(server: str) -> str:
    """The DSN of a new database with our schema."""
    run_blocking(_ensure_template(server))
    return create(server, TEMPLATE)


def drop(server: str, dsn: str) -> None:
    """Drop the database even when a test left connections open."""
    execute(server, f'DROP DATABASE IF EXISTS "{urlsplit(dsn).path[1:]}" WITH (FORCE)')


def with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def execute(dsn: str, sql: str) -> None:
    run_blocking(_execute(dsn, sql))


def fetch_value(dsn: str, sql: str, *arguments: Any) -> Any:
    return run_blocking(_fetch_value(dsn, sql, arguments))


def run_blocking(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, whether or not this thread runs an event loop already."""
    outcome: Future[Any] = Future()

    def finish() -> None:
        try:
            outcome.set_result(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001  it is raised again where the result is asked for
            outcome.set_exception(error)

    thread = threading.Thread(target=finish, name="database admin")
    thread.start()
    thread.join()
    return outcome.result()


@asynccontextmanager
async def _connection(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn, timeout=PATIENCE, command_timeout=PATIENCE)
    try:
        yield connection
    finally:
        await connection.close()


async def _execute(dsn: str, sql: str) -> None:
    async with _connection(dsn) as connection:
        await connection.execute(sql)


async def _fetch_value(dsn: str, sql: str, arguments: tuple[Any, ...]) -> Any:
    async with _connection(dsn) as connection:
        return await connection.fetchval(sql, *arguments)


async def _ensure_template(server: str) -> None:
    """Build the template once per run; test processes that come meanwhile wait for it."""
    if server in _with_template:
        return
    async with _connection(server) as admin:
        await admin.fetchval("SELECT pg_advisory_lock($1)", _TEMPLATE_LOCK)
        if not await admin.fetchval("SELECT true FROM pg_database WHERE datname = $1", TEMPLATE):
            await _build_template(admin, server)
    _with_template.add(server)


async def _build_template(admin: asyncpg.Connection, server: str) -> None:
    """The name comes last, so that a template that was built halfway is never taken for a whole one."""
    await admin.execute(f'DROP DATABASE IF EXISTS "{TEMPLATE}_draft" WITH (FORCE)')
    await admin.execute(f'CREATE DATABASE "{TEMPLATE}_draft" TEMPLATE template0')
    await apply_schema(with_database(server, f"{TEMPLATE}_draft"))
    await admin.execute(f'ALTER DATABASE "{TEMPLATE}_draft" WITH ALLOW_CONNECTIONS false')
    await admin.execute(f'ALTER DATABASE "{TEMPLATE}_draft" RENAME TO "{TEMPLATE}"')
