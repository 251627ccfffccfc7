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
