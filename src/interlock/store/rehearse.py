"""A dry run: the real work in a real transaction that is taken back, so that the answer is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.store.connection import Connection
    from interlock.store.database import Database

T = TypeVar("T")


async def rehearse(database: Database, work: Callable[[Connection], Awaitable[T]]) -> T:
    """What the work would answer; nothing of it is kept, and nobody is woken."""
    async with database.connection() as conn:
        transaction = conn.transaction(isolation="read_committed")
        await transaction.start()
        try:
            return await work(conn)
        finally:
            await transaction.rollback()
