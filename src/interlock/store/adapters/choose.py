"""Which adapter serves a connection: told by the classes it derives from, so that no driver has to be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import UnsupportedConnection
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.psycopg import AsyncPsycopgAdapter, PsycopgAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.store.adapters.protocol import AsyncAdapter, BlockingAdapter

_ASYNC: dict[tuple[str, str], Callable[[Any], AsyncAdapter]] = {
    ("asyncpg", "Connection"): AsyncpgAdapter,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgAdapter,
    ("psycopg", "AsyncConnection"): AsyncPsycopgAdapter,
}
_BLOCKING: dict[tuple[str, str], Callable[[Any], BlockingAdapter]] = {("psycopg", "Connection"): PsycopgAdapter}


def adapt(conn: object) -> AsyncAdapter:
    """The adapter of a connection whose calls are awaited."""
    for kind in _kinds(conn):
        if kind in _ASYNC:
            return _ASYNC[kind](conn)
    found, hint = _described(conn), "an asyncpg or an async psycopg connection"
    if any(kind in _BLOCKING for kind in _kinds(conn)):
        hint += "; with a blocking one call the blocking twin"
    elif _is_pool(conn):
        hint += "; take one of the pool for as long as your transaction lasts, and pass that"
    raise UnsupportedConnection(found=found, expected=hint)


def adapt_blocking(conn: object) -> BlockingAdapter:
    """The adapter of a connection whose calls block."""
    for kind in _kinds(conn):
        if kind in _BLOCKING:
            return _BLOCKING[kind](conn)
    found, hint = _described(conn), "a blocking psycopg connection"
    if any(kind in _ASYNC for kind in _kinds(conn)):
        hint += "; with an async one await the async twin"
    elif _is_pool(conn):
        hint += "; take one of the pool for as long as your transaction lasts, and pass that"
    raise UnsupportedConnection(found=found, expected=hint)


def _kinds(conn: object) -> list[tuple[str, str]]:
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(conn).__mro__]


def _is_pool(conn: object) -> bool:
    return "pool" in type(conn).__name__.lower()


def _described(conn: object) -> str:
    return f"{type(conn).__module__}.{type(conn).__qualname__}"
