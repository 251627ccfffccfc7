"""Whether the fleet works, in one word: for a supervisor that asks from outside.

Unhealthy: nobody works. Degraded: something that should be there is not, or work waits longer than it should.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from interlock.locks.health import HealthState
from interlock.operate.blockers.words import span
from interlock.store.checkup import Checkup
from interlock.store.gauging import Gauging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from interlock.locks.health import Health
    from interlock.store.checkup import FleetMember
    from interlock.store.database import Database
    from interlock.store.gauging import LaneLevel

LONG_WAIT = timedelta(minutes=5)


class State(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


_WORST_LAST = list(State)


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class FleetHealth:
    checks: Sequence[Check]

    @property
    def state(self) -> State:
        return max((check.state for check in self.checks), key=_WORST_LAST.index)


async def read_health(
    database: Database, *, server: str | None = None, now: datetime | None = None, long_wait: timedelta = LONG_WAIT
) -> FleetHealth:
    """Of the whole fleet, or of one server by its name; raises if the database does not answer."""
    async with database.connection() as conn:
        fleet = await Checkup(database.sql).fleet(conn)
        lanes = [] if server is not None else await Gauging(database.sql).lanes(conn, now=now)
    if server is not None:
        return FleetHealth([check_server(fleet, server)])
    return FleetHealth([*check_roles(fleet), check_waiting(lanes, long_wait)])


def check_server(fleet: Sequence[FleetMember], name: str) -> Check:
    mine = [member for member in fleet if member.name == name]
    alive = [member for member in mine if member.state == "alive" and member.leased]
    if alive:
        return Check("server", State.HEALTHY, f"{name} renewed its lease {span(alive[0].heartbeat_age)} ago")
    if any(member.leased for member in mine):
        return Check("server", State.DEGRADED, f"{name} is draining")
    return Check("server", State.UNHEALTHY, f"{name} has no lease" if mine else f"no server is called {name}")


def check_roles(fleet: Sequence[FleetMember]) -> Iterator[Check]:
    alive = [member for member in fleet if member.state == "alive" and member.leased]
    if not alive:
        yield Check("servers", State.UNHEALTHY, "no server is alive")
        return
    yield Check("servers", State.HEALTHY, f"{len(alive)} alive")
    submits = any("dispatch" in member.roles for member in alive)
    for role, without in {"worker": "nothing is run", "manifests": "nothing is queued by its schedule"}.items():
        there = sum(role in member.roles for member in alive)
        if role == "worker" and not there and submits:
            there = sum("runner" in member.roles for member in alive)
        lacking = f"no live server has the role {role}: {without}"
        yield Check(role, State.HEALTHY, f"{there} alive") if there else Check(role, State.DEGRADED, lacking)


def check_locks(health: Health) -> Check:
    """Degraded at worst: whoever needs no slot works on."""
    fine = health.state is HealthState.HEALTHY
    return Check("locks", State.HEALTHY if fine else State.DEGRADED, health.detail)


def check_waiting(lanes: Sequence[LaneLevel], long_wait: timedelta) -> Check:
    late = [lane for lane in lanes if lane.oldest > long_wait]
    if not late:
        return Check("queue", State.HEALTHY, "nothing waits for long")
    worst = max(late, key=lambda lane: lane.oldest)
    text = f"work of train {worst.train} in group {worst.group_name} has waited for {span(worst.oldest)}"
    return Check("queue", State.DEGRADED, text)
