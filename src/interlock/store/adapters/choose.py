"""Which adapter serves a connection: told by the classes it derives from, so that no driver has to be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from interlock.errors import UnsupportedConnection
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.psycopg import AsyncPsycopgAdapter, PsycopgAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.store.adapters.protocol import AsyncAdapter, BlockingAdapter

    T = TypeVar("T")
    Adapters: TypeAlias = dict[tuple[str, str], Callable[[Any], T]]

_ASYNC: Adapters[AsyncAdapter] = {
    ("asyncpg", "Connection"): AsyncpgAdapter,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgAdapter,
    ("psycopg", "AsyncConnection"): AsyncPsycopgAdapter,
}
_BLOCKING: Adapters[BlockingAdapter] = {("psycopg", "Connection"): PsycopgAdapter}


def adapt(conn: object) -> AsyncAdapter:
    """The adapter of a connection whose calls are awaited."""
    expected = "an asyncpg or an async psycopg connection"
    return _adapted(conn, _ASYNC, expected, _BLOCKING, "with a blocking one call the blocking twin")


def adapt_blocking(conn: object) -> BlockingAdapter:
    """The adapter of a connection whose calls block."""
    expected = "a blocking psycopg connection"
    return _adapted(conn, _BLOCKING, expected, _ASYNC, "with an async one await the async twin")


def _adapted(conn: object, ours: Adapters[T], expected: str, twins: Adapters[Any], hint: str) -> T:
    for kind in _kinds(conn):
        if kind in ours:
            return ours[kind](conn)
    if any(kind in twins for kind in _kinds(conn)):
        expected += f"; {hint}"
    elif _is_pool(conn):
        expected += "; take one of the pool for as long as your transaction lasts, and pass that"
    raise UnsupportedConnection(found=_described(conn), expected=expected)


def _kinds(conn: object) -> list[tuple[str, str]]:
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(conn).__mro__]


def _is_pool(conn: object) -> bool:
    return "pool" in type(conn).__name__.lower()


def _described(conn: object) -> str:
    return f"{type(conn).__module__}.{type(conn).__qualname__}"
