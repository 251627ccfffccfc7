"""One look at everything that people watch: for `top`, and for whoever draws it elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.store.checkup import Checkup
from interlock.store.gauging import Gauging

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from interlock.store.checkup import FleetMember
    from interlock.store.database import Database
    from interlock.store.gauging import GroupLevel, LaneLevel, Levels, RunLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    levels: Levels
    lanes: Sequence[LaneLevel]
    """What waits, by group and train, the most first."""
    groups: Sequence[GroupLevel]
    running: Sequence[RunLevel]
    """What has run for the longest."""
    fleet: Sequence[FleetMember]


async def read_gauges(database: Database, *, now: datetime | None) -> Gauges:
    gauging, checkup = Gauging(database.sql), Checkup(database.sql)
    async with database.connection() as conn:
        return Gauges(
            levels=await gauging.levels(conn, now=now),
            lanes=await gauging.lanes(conn, now=now),
            groups=await gauging.groups(conn),
            running=await gauging.running(conn, now=now),
            fleet=await checkup.fleet(conn),
        )
