"""The roles of the documentation are enough for what they are said to be for, and for no more.

Roles belong to a whole PostgreSQL, hence one of this test's own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest

from interlock import Interlock, every
from interlock.errors import WriteRefused
from tests.harness.processes import ROOT
from tests.harness.snippets import snippets_of
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "how-to" / "least-privilege-roles.md"
SQL = {snippet.value: snippet.text for snippet in snippets_of(PAGE, PAGE.name) if snippet.demand == "file"}
PASSWORDS = {"shop_owner": 1, "shop_server": 2, "shop_web": 3, "shop_viewer": 4}


@pytest.fixture
async def address(own_postgres) -> Callable[[str], str]:
    """The address of each documented role, in a database that was set up as the page says."""

    def of(role: str) -> str:
        return own_postgres.dsn.replace(
            own_postgres.dsn.split("@")[0], f"postgresql://{role}:change-me-{PASSWORDS[role]}"
        )

    await execute(own_postgres.dsn, SQL["roles.sql"])
    owner = Interlock(of("shop_owner"), schema="shop_jobs")
    await owner.aapply_schema()
    await owner.aclose()
    await execute(of("shop_owner"), SQL["grants.sql"])
    return of


async def execute(dsn: str, sql: str) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute(sql)
    finally:
        await conn.close()


class Shop:
    """An app that uses every part of a server."""

    def __init__(self, dsn: str) -> None:
        self.app = app = Interlock(dsn, name="shop", schema="shop_jobs", schema_apply="never")
        self.ticked, self.delivered = asyncio.Event(), asyncio.Event()
        app.group("etl", max_active_jobs=1)

        @app.train(group="etl")
        async def double(number: int) -> int:
            async with app.locks.hold("double"):
                return number * 2

        @app.train(max_attempts=1)
        async def fail() -> None:
            raise LookupError("no")

        app.schedule("hourly", double.bind(1), every(hours=1)).then("after", double.bind(2))
        app.timer(every(milliseconds=200), runs_per_tick=1, spread_start=False)(self.tick)
        app.outbox.emitter("order.*")(self.deliver)

    async def tick(self) -> None:
        self.ticked.set()

    async def deliver(self, _message: object, _context: object) -> None:
        self.delivered.set()


async def publish(app: Interlock, dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    try:
        async with conn.transaction():
            await app.outbox.apublish(conn, "order.paid", {"id": 1}, key="order:1")
    finally:
        await conn.close()


async def test_a_server_and_a_web_process_do_all_their_work_with_the_documented_rights(address):
    shop, web = Shop(address("shop_server")), Shop(address("shop_web")).app
    failures: list[object] = []
    shop.app.events.subscribe(lambda event: failures.append(event) if type(event).__name__ == "LoopFailed" else None)
    async with shop.app.running(), web:
        assert await (await web.trains.get("double").using(key="k").aenqueue(21)).aresult(timeout=60) == 42
        await publish(web, address("shop_web"))
        await asyncio.wait_for(asyncio.gather(shop.delivered.wait(), shop.ticked.wait()), 60)
        await web.trains.get("fail").aenqueue()
        await eventually(lambda: has_run(shop.app, "after"), 60, "the dependent")
        await eventually(shop.app.dead_letters.alist, 60, "the dead letter")
        [letter] = await shop.app.dead_letters.alist()
        await shop.app.dead_letters.aacknowledge(letter.id, note="known", actor="ada")
        await shop.app.adisable("hourly", actor="ada")
        await shop.app.retention(await shop.app.adatabase()).run()
        assert [found for found in await shop.app.adoctor() if found.check == "privileges"] == []
    assert failures == []


async def has_run(app: Interlock, manifest: str) -> bool:
    lines = (await app.views.executions(manifest=manifest)).lines
    return any(line.state == "completed" for line in lines)


FORBIDDEN = [
    ("shop_server", "create table shop_jobs.mine ()"),
    ("shop_server", "drop table shop_jobs.outbox"),
    ("shop_server", "truncate shop_jobs.audit"),
    ("shop_server", "delete from shop_jobs.schema_version"),
    ("shop_server", "create schema mine"),
    ("shop_web", "update shop_jobs.work_queue set priority = 63"),
    ("shop_web", "delete from shop_jobs.work_queue"),
    ("shop_web", "update shop_jobs.outbox set state = 'delivered'"),
    ("shop_web", "select * from shop_jobs.server"),
    ("shop_web", "insert into shop_jobs.manifest_group (name) values ('mine')"),
    ("shop_viewer", "insert into shop_jobs.manifest_group (name) values ('mine')"),
    ("shop_viewer", "update shop_jobs.manifest set enabled = false"),
]


async def test_no_role_may_do_more_than_the_page_says(address):
    for role, statement in FORBIDDEN:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await execute(address(role), statement)
    viewer = Interlock(address("shop_viewer"), schema="shop_jobs")
    async with viewer:
        assert (await viewer.views.executions()).lines == []
        assert await viewer.aservers() == []


async def test_tables_of_later_migrations_are_covered(address):
    await execute(address("shop_owner"), "create table shop_jobs.later (id bigint generated always as identity)")
    await execute(address("shop_server"), "insert into shop_jobs.later default values")
    await execute(address("shop_viewer"), "select * from shop_jobs.later")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await execute(address("shop_web"), "select * from shop_jobs.later")


async def test_control_without_one_of_its_rights_a_web_process_cannot_enqueue(address):
    await execute(address("shop_owner"), "revoke insert on shop_jobs.work_queue from shop_web")
    web = Shop(address("shop_web")).app
    async with web:
        with pytest.raises((WriteRefused, asyncpg.InsufficientPrivilegeError)):
            await web.trains.get("fail").aenqueue()
