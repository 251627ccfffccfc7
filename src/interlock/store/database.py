"""The one door to PostgreSQL: a pool per event loop, opened on first use.

A pool belongs to the process and the event loop that opened it. After a fork the child's first use opens its own; the
inherited one is kept aside untouched, because closing it would speak on sockets that the parent still uses.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.errors import DatabaseUnavailable, SchemaError
from interlock.observe.redact import without_password
from interlock.store.address import UNREADABLE as UNNAMED
from interlock.store.address import describe_address
from interlock.store.fault import is_undefined
from interlock.store.per_loop import PerLoop
from interlock.store.sql import Catalog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta

    import asyncpg
    from asyncpg.pool import PoolConnectionProxy

    from interlock.store.connection import Connection, Record
    from interlock.store.settings import StoreSettings

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0
COMMAND_TIMEOUT = 30.0
A_MOMENT = 1.0
"""Seconds that a connection has to finish what was cut short; then it is closed, and PostgreSQL rolls back alone."""
CONFLICT_RETRIES = 5
PATIENCE = 10
"""So many times what a tick has: where a body blocks the event loop between two statements of a settle, nothing stands
still, and a settle that is ended each time would never be written.
"""
UNREADABLE = "its address is not of the form postgresql://user:password@host:port/database, percent-encoded"


async def _as_it_is(_conn: Any) -> None:
    """What goes back to the pool has nothing to be reset: settings, locks and cursors of ours end with a transaction.

    An open transaction is rolled back by the driver all the same; its reset would cost a round trip each time.
    """


async def _close(pending: asyncio.Future[asyncpg.Pool[Record]]) -> None:
    pool = await pending
    try:
        await asyncio.wait_for(pool.close(), CONNECT_TIMEOUT)
    except (TimeoutError, OSError):
        pool.terminate()


class Database:
    """Connections, transactions and compiled statements of one schema in one database."""

    def __init__(self, dsn: str, settings: StoreSettings) -> None:
        self.settings = settings
        self.sql = Catalog(settings.schema)
        self.where = describe_address(dsn)
        self.dsn = dsn
        self._served = 0
        self._pools: PerLoop[asyncio.Future[asyncpg.Pool[Record]]] = PerLoop(
            lambda: asyncio.ensure_future(self._open()), _close
        )

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        """A pooled connection outside any transaction."""
        pool = await self._pool()
        async with self._reachable():
            conn = await self._acquire(pool)
        try:
            yield conn
            self._served += 1
        except Exception as error:
            if is_undefined(error):
                await self._explain(conn, error)
            raise
        finally:
            with suppress(TimeoutError):
                await pool.release(conn, timeout=A_MOMENT)

    async def _acquire(self, pool: asyncpg.Pool[Record]) -> PoolConnectionProxy[Record]:
        """Whoever comes in a burst waits while others of this process are served, because that is no outage."""
        patient_until = time.monotonic() + COMMAND_TIMEOUT
        while True:
            served = self._served
            try:
                return await pool.acquire(timeout=CONNECT_TIMEOUT)
            except TimeoutError as error:
                if self._served == served:
                    raise
                if time.monotonic() > patient_until:
                    in_use = f"each of the {self.settings.pool_size} connections of this process (pool_size)"
                    raise TimeoutError(f"{in_use} was in use for {COMMAND_TIMEOUT:g} s") from error

    async def _explain(self, conn: Connection, error: Exception) -> None:
        from interlock.store import migrate  # noqa: PLC0415  who has the tables does without

        try:
            await migrate.check(conn, self.sql.schema)
        except SchemaError as why:
            raise why from error

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection, None]:
        """A READ COMMITTED transaction that commits when the block ends well.

        PostgreSQL ends it by itself when this process stands still, so that nobody waits for ever for what it locked.
        """
        async with self.connection() as conn, self.transaction_on(conn):
            yield conn

    @asynccontextmanager
    async def transaction_on(self, conn: Connection) -> AsyncGenerator[None, None]:
        """The same on a connection that the caller keeps."""
        async with _read_committed(conn):
            await self.sql["session/end_if_idle"].execute(conn, idle_timeout=_milliseconds(self._longest_standstill))
            yield

    @asynccontextmanager
    async def tick(self) -> AsyncGenerator[Connection, None]:
        """A transaction that PostgreSQL ends as soon as this process stands still or a statement takes long, so that a
        paused leader frees its locks within seconds.
        """
        async with self.connection() as conn, self.tick_on(conn):
            yield conn

    @asynccontextmanager
    async def tick_on(self, conn: Connection, *, by_index: bool = False) -> AsyncGenerator[None, None]:
        """The same on a connection that the caller keeps; `by_index` for statements that look up a few of many rows."""
        async with _read_committed(conn):
            await self.sql["session/join_by_index" if by_index else "session/limit"].execute(
                conn,
                statement_timeout=_milliseconds(self.settings.tick_statement_timeout),
                idle_timeout=_milliseconds(self.settings.tick_idle_timeout),
            )
            yield

    async def plan_by_key(self, conn: Connection) -> None:
        """Settings for a connection that only ever looks rows up by key."""
        idle_timeout = _milliseconds(self._longest_standstill)
        await self.sql["session/by_key"].execute(conn, idle_timeout=idle_timeout)

    async def end_stalled_ticks(self, conn: Connection) -> int:
        """End what stopped processes have begun and PostgreSQL does not end by itself; answers how many there were."""
        ended = await self.sql["session/end_stalled"].fetch(
            conn, idle_timeout=self.settings.tick_idle_timeout, longest_standstill=self._longest_standstill
        )
        return len(ended)

    async def retrying(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        transaction: Callable[[], AbstractAsyncContextManager[Connection]] | None = None,
    ) -> T:
        """The work in a transaction, again from the start when PostgreSQL picked it to break a deadlock."""
        from asyncpg import DeadlockDetectedError, SerializationError  # noqa: PLC0415  the driver loads on first use

        for attempt in range(CONFLICT_RETRIES):
            try:
                async with (transaction or self.transaction)() as conn:
                    return await work(conn)
            except (DeadlockDetectedError, SerializationError):
                if attempt == CONFLICT_RETRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def connect(self, purpose: str) -> asyncpg.Connection[Record]:
        """A connection of one's own, outside the pool: for the listener and the keeper."""
        import asyncpg  # noqa: PLC0415  the driver loads on first use

        async with self._reachable():
            return await asyncpg.connect(self.dsn, **self._options(f"interlock {purpose}"))

    async def close(self) -> None:
        """Close the pool of each event loop that still runs."""
        await self._pools.close()

    async def _pool(self) -> asyncpg.Pool[Record]:
        pending = self._pools.get()
        try:
            return await asyncio.shield(pending)
        except BaseException:
            if pending.done():
                self._pools.discard(pending)
            raise

    async def _open(self) -> asyncpg.Pool[Record]:
        import asyncpg  # noqa: PLC0415  the driver loads on first use

        async with self._reachable():
            # No smallest size: during an outage the driver would try to restore it, and log a traceback every time.
            return await asyncpg.create_pool(
                self.dsn,
                min_size=0,
                max_size=self.settings.pool_size,
                reset=_as_it_is,
                **self._options("interlock"),
            )

    def _options(self, application: str) -> dict[str, Any]:
        options: dict[str, Any] = {
            "timeout": CONNECT_TIMEOUT,
            "command_timeout": self.command_seconds,
            "server_settings": {"application_name": application},
        }
        if self.settings.statement_cache_size is not None:
            options["statement_cache_size"] = self.settings.statement_cache_size
        return options

    @property
    def command_seconds(self) -> float:
        """How long a statement may take, unless it says so itself."""
        return max(COMMAND_TIMEOUT, self._statement_seconds() + CONNECT_TIMEOUT)

    @property
    def _longest_standstill(self) -> timedelta:
        return self.settings.tick_idle_timeout * PATIENCE

    def _statement_seconds(self) -> float:
        return self.settings.tick_statement_timeout.total_seconds()

    @asynccontextmanager
    async def _reachable(self) -> AsyncGenerator[None, None]:
        import asyncpg  # noqa: PLC0415  the driver loads on first use

        try:
            yield
        except asyncpg.exceptions.ClientConfigurationError as error:
            # An address that is fine, with an option in it that is not: the driver says which.
            reason = UNREADABLE if self.where == UNNAMED else _in_one_line(str(error))
            raise DatabaseUnavailable(where=self.where, reason=reason) from None
        except (ValueError, OverflowError):
            # The driver quotes the piece it could not read, which may be a piece of the password.
            raise DatabaseUnavailable(where=self.where, reason=UNREADABLE) from None
        except FileNotFoundError as error:
            raise DatabaseUnavailable(where=self.where, reason=_missing_file(self.dsn, error)) from error
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            reason = str(error) or f"no answer within {CONNECT_TIMEOUT:g} s"
            raise DatabaseUnavailable(where=self.where, reason=reason) from error


@asynccontextmanager
async def _read_committed(conn: Connection) -> AsyncGenerator[None, None]:
    """As the driver's own, except that whoever is cancelled waits no longer than a moment for the rollback."""
    async with asyncio.timeout(None) as patience, conn.transaction(isolation="read_committed"):
        try:
            yield
        except asyncio.CancelledError:
            patience.reschedule(asyncio.get_running_loop().time() + A_MOMENT)
            raise


def _milliseconds(duration: timedelta) -> str:
    return str(round(duration.total_seconds() * 1000))


def _in_one_line(text: str) -> str:
    return without_password(" ".join(text.split()))


def _missing_file(dsn: str, error: FileNotFoundError) -> str:
    """The driver does not say which file; only an address with certificates in it names any."""
    of_ssl = [name for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl") if f"{name}=" in dsn]
    return f"{error} (one of the files of {', '.join(of_ssl)})" if of_ssl else str(error)
