"""Waiting for the end of work that is known by its number and the name of its train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from interlock.dispatch.gateway import WorkGateway
from interlock.observe.bus import Bus
from interlock.runtime.clock import DatabaseClock

if TYPE_CHECKING:
    from interlock.model.execution import Policy
    from interlock.store.database import Database
    from interlock.trains.handle import Handle


@dataclass(frozen=True, slots=True)
class _Named:
    name: str


@dataclass(frozen=True, slots=True)
class _Work:
    """As much of a handle as waiting needs: the code of the train may be elsewhere."""

    id: int
    train: _Named


async def output_of(database: Database, entry_id: int, train: str, *, seconds: float | None = None) -> str:
    """The output as JSON once the work has ended; raises what failed, or ResultTimeout."""

    async def opened() -> Database:
        return database

    gateway = WorkGateway(
        opened,
        lambda: database.sql.schema,
        policy=cast("Policy", None),  # nothing is enqueued here
        max_input_bytes=0,
        declared_groups=tuple,
        events=Bus(),
        clock=DatabaseClock,
    )
    try:
        return await gateway.aresult(cast("Handle[Any]", _Work(entry_id, _Named(train))), seconds)
    finally:
        await gateway.aclose()
