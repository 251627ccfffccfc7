"""While the database is away nothing that lives is given up, and nothing is lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg

from tests.harness.schema import apply_schema
from tests.harness.waiting import eventually
from tests.harness.working import LEDGER, WorkingFleet, client

LEASE = 3.0  # long enough for a busy machine: whoever lives must renew in time after the outage


async def test_a_database_that_is_away_for_three_leases_costs_no_job(works, shop, proxy_to):
    proxies = [proxy_to(works.dsn) for _ in range(2)]
    servers = [await works.server(dsn=proxy.dsn(works.dsn), lease=LEASE) for proxy in proxies]
    for server in servers:
        await works.may_judge(server)
    announced = shop.trains.get("announced")
    handles = await shop.aenqueue_many([announced.bind(2 * LEASE) for _ in range(8)])
    await eventually(lambda: _began(servers) == 8, 60, "eight running jobs")
    for proxy in proxies:
        proxy.cut()
    await asyncio.sleep(3 * LEASE)  # the outage itself
    for proxy in proxies:
        proxy.heal()
    results = [await handle.aresult(timeout=60) for handle in handles]
    assert {result.partition(" ")[0] for result in results} == {"done"}
    assert _began(servers) == 8
    assert {(row["state"], row["crashes"]) for row in await works.executions("state, crashes")} == {("completed", 0)}
    assert all(server.heard("marked") == [] for server in servers)


def _began(servers) -> int:
    return sum(len(server.heard("running")) for server in servers)


async def test_a_power_cut_of_the_database_under_load_loses_nothing(own_postgres, fleet):
    await apply_schema(own_postgres.dsn)
    conn = await asyncpg.connect(own_postgres.dsn)
    await conn.execute(LEDGER)
    works = WorkingFleet(fleet, own_postgres.dsn, conn)
    for _ in range(2):
        await works.server(worker_slots=10)
    # The bodies write to the database that is cut, so some of them fail: they are to be tried again at once.
    async with client(own_postgres.dsn, max_attempts=20, max_crashes=100, retry_delay=timedelta(seconds=0.2)) as shop:
        work = shop.trains.get("work")
        await shop.aenqueue_many([work.bind(n, 0.1) for n in range(400)])
    await eventually(lambda: _some_ended(works), 60, "work in progress")
    await conn.close()
    await asyncio.to_thread(own_postgres.stop, "immediate")
    await asyncio.to_thread(own_postgres.start)
    works.conn = await asyncpg.connect(own_postgres.dsn)
    back = await works.conn.fetchval("SELECT clock_timestamp()")
    goes_on = "SELECT min(ended_at) FROM interlock.execution WHERE ended_at > $1"
    ended = await eventually(lambda: works.conn.fetchval(goes_on, back), what="work that goes on")
    assert ended - back < timedelta(seconds=5)
    await works.all_ended(400, 120)
    assert await works.overlapping_claims() == 0
    await works.conn.close()


async def _some_ended(works) -> bool:
    count = "SELECT count(*) FROM interlock.execution WHERE state = 'completed'"
    return await works.conn.fetchval(count) > 30
