"""Who is dead is found out in time, who slept too long finds out by itself, and an outage kills nobody."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from interlock import Interlock
from interlock.observe.events import LeaseLostByServer, LoopRecovered, ServerLost, ServerRegistered
from interlock.store.server import Servers
from tests.harness.child import tell
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually
from tests.integration.store.test_judging import STEADY, Without

LEASE, HEARTBEAT = timedelta(seconds=4), timedelta(seconds=0.4)
SETTINGS = {**SHORT_LEASES, "lease": LEASE, "heartbeat": HEARTBEAT}
STARTING = 60.0
TOLD = {
    ServerRegistered: ("registered", "server"),
    LeaseLostByServer: ("lease_lost", "server"),
    ServerLost: ("marked", "server"),
    LoopRecovered: ("recovered", "loop"),
}


async def serve(dsn: str, name: str, guards_off: list[str]) -> None:
    """The child: a server that tells what happens to it, and every judgement that it passed."""
    judge_aloud(guards_off)
    app = Interlock(dsn, server_name=name, **SETTINGS)
    for kind, (word, field) in TOLD.items():
        app.events.subscribe(
            lambda event, word=word, field=field: tell(word, **{field: getattr(event, field)}), (kind,)
        )
    async with app.running() as keeper:
        tell("up", server=keeper.server)
        await asyncio.Event().wait()


def judge_aloud(guards_off: list[str]) -> None:
    judge_quietly, judging = Servers.mark_lost, Servers(Without(*guards_off))

    async def mark_lost(_self, conn, judge):
        lost = await judge_quietly(judging, conn, judge)
        tell("judged")
        return lost

    Servers.mark_lost = mark_lost


class Ward:
    """Servers under observation from outside."""

    def __init__(self, fleet, conn: asyncpg.Connection) -> None:
        self._fleet, self._conn = fleet, conn

    async def server(self, dsn: str, name: str, *, guards_off: list[str] | None = None):
        process = self._fleet.start(f"{__name__}:serve", dsn, name, guards_off or [], name=name)
        process.server = (await process.expect("up", STARTING))["server"]
        return process

    async def states(self) -> dict[str, str]:
        rows = await self._conn.fetch("SELECT id::text, state FROM interlock.server")
        return {row["id"]: row["state"] for row in rows}

    async def may_judge(self, process) -> None:
        """The server has been steady for a lease, and PostgreSQL has run for one."""
        question = (
            "SELECT greatest(steady_since, pg_postmaster_start_time()) + lease < statement_timestamp()"
            " FROM interlock.server WHERE id = $1::text::uuid"
        )
        await eventually(lambda: self._conn.fetchval(question, process.server), 60, "a judge that may judge")

    async def has_expired_for(self, process, leases: int) -> None:
        question = "SELECT lease_until + $2 < statement_timestamp() FROM interlock.server WHERE id = $1::text::uuid"
        wait = (leases - 1) * LEASE
        await eventually(lambda: self._conn.fetchval(question, process.server, wait), 60, f"{leases} leases")

    async def late_by(self, process) -> timedelta:
        """How long after the first moment at which its judge might do so a server was marked lost."""
        question = (
            "SELECT s.ended_at - greatest(s.lease_until, judge.steady_since + s.lease)"
            " FROM interlock.server s JOIN interlock.server judge ON judge.id = s.lost_by WHERE s.id = $1::text::uuid"
        )
        return await self._conn.fetchval(question, process.server)


async def judged_again(process, times: int = 2) -> None:
    before = len(process.heard("judged"))
    await eventually(lambda: len(process.heard("judged")) >= before + times, 60, "more judgements")


@pytest.fixture
async def ward(fleet, migrated):
    conn = await asyncpg.connect(migrated, timeout=10)
    yield Ward(fleet, conn)
    await conn.close()


async def test_a_killed_server_is_marked_lost_as_soon_as_its_lease_is_over(ward, migrated):
    victim, judge = await ward.server(migrated, "victim"), await ward.server(migrated, "judge")
    await ward.may_judge(judge)
    assert set((await ward.states()).values()) == {"alive"}
    victim.kill()
    assert (await judge.expect("marked"))["server"] == victim.server
    assert await ward.states() == {victim.server: "lost", judge.server: "alive"}
    assert timedelta(0) < await ward.late_by(victim) < timedelta(seconds=2)
    await judged_again(judge)
    assert len(judge.heard("marked")) == 1


async def test_a_server_that_slept_past_its_lease_finds_itself_lost_and_registers_anew(ward, migrated):
    sleeper, judge = await ward.server(migrated, "sleeper"), await ward.server(migrated, "judge")
    await ward.may_judge(judge)
    await sleeper.expect("registered")
    sleeper.stop()
    assert (await judge.expect("marked"))["server"] == sleeper.server
    assert sleeper.heard("lease_lost") == []
    sleeper.cont()
    assert (await sleeper.expect("lease_lost"))["server"] == sleeper.server
    anew = (await sleeper.expect("registered"))["server"]
    assert anew != sleeper.server
    assert await ward.states() == {sleeper.server: "lost", judge.server: "alive", anew: "alive"}
    assert sleeper.heard("marked") == []


async def outage_of_three_leases(ward, migrated, proxy_to, *, guards_off: list[str]):
    """Both lose the database for three leases; the judge has it back first, and judges before the other renews."""
    lines = {name: proxy_to(migrated) for name in ("judge", "other")}
    judge = await ward.server(lines["judge"].dsn(migrated), "judge", guards_off=guards_off)
    other = await ward.server(lines["other"].dsn(migrated), "other")
    await ward.may_judge(judge)
    await ward.may_judge(other)
    for line in lines.values():
        line.cut()
    for process in (judge, other):
        await ward.has_expired_for(process, 3)
    lines["judge"].heal()
    await recovered(judge, "keeper")
    await judged_again(judge)
    lines["other"].heal()
    await recovered(other, "keeper")
    return judge, other


async def recovered(process, loop: str) -> None:
    await eventually(lambda: any(one["loop"] == loop for one in process.heard("recovered")), 60, f"{loop} recovered")


async def test_an_outage_of_three_leases_marks_nobody_lost(ward, migrated, proxy_to):
    judge, other = await outage_of_three_leases(ward, migrated, proxy_to, guards_off=[])
    await ward.may_judge(judge)
    await judged_again(judge)
    assert judge.heard("marked") == other.heard("marked") == []
    assert judge.heard("lease_lost") == other.heard("lease_lost") == []
    assert await ward.states() == {judge.server: "alive", other.server: "alive"}


async def test_control_a_judge_that_does_not_mind_its_own_outage_marks_the_living_lost(ward, migrated, proxy_to):
    judge, other = await outage_of_three_leases(ward, migrated, proxy_to, guards_off=[STEADY])
    assert [one["server"] for one in judge.heard("marked")] == [other.server]
    assert (await other.expect("lease_lost"))["server"] == other.server


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("round_number", range(10))
async def test_control_it_does_so_ten_times_of_ten(ward, migrated, proxy_to, round_number):
    judge, other = await outage_of_three_leases(ward, migrated, proxy_to, guards_off=[STEADY])
    assert [one["server"] for one in judge.heard("marked")] == [other.server]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_of_ten_servers_three_killed_and_two_asleep_are_marked_lost_and_no_other(ward, migrated):
    servers = [await ward.server(migrated, f"server{number}") for number in range(10)]
    for judge in servers:
        await ward.may_judge(judge)
    for victim in servers[:3]:
        victim.kill()
    for sleeper in servers[3:5]:
        sleeper.stop()
    expected = {one.server: "lost" if number < 5 else "alive" for number, one in enumerate(servers)}

    async def as_expected() -> bool:
        return await ward.states() == expected

    await eventually(as_expected)
    for victim in servers[:5]:
        assert timedelta(0) < await ward.late_by(victim) < timedelta(seconds=2)
    for judge in servers[5:]:
        await judged_again(judge)
    assert await ward.states() == expected
    marked = [one["server"] for judge in servers[5:] for one in judge.heard("marked")]
    assert sorted(marked) == sorted(one.server for one in servers[:5])
