"""What the rest of Interlock may know of a connection, without knowing the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import asyncpg
    from asyncpg.pool import PoolConnectionProxy

    Record: TypeAlias = asyncpg.Record
    Connection: TypeAlias = asyncpg.Connection[Record] | PoolConnectionProxy[Record]
else:
    Record = Connection = Any

_inherited: list[object] = []


def set_aside(inherited: object) -> None:
    """Keep what came through a fork, untouched: closing or collecting it would speak on sockets of the parent."""
    if inherited is not None:
        _inherited.append(inherited)
