"""Old and new code side by side: nothing fails that should not, and nothing waits that could run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from interlock import Interlock
from interlock.errors import ResultTimeout
from tests.harness.child import tell
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence


def old_app(dsn: str) -> Interlock:
    app = Interlock(dsn, server_name="old", **SHORT_LEASES)

    @app.train(name="send-mail")
    async def send_mail(to: str) -> str:
        return f"old {to}"

    return app


def new_app(dsn: str, *, aliases: Sequence[str] = ("send-mail",)) -> Interlock:
    """The train got a new name and a parameter, and there is one that the old code never heard of."""
    app = Interlock(dsn, server_name="new", **SHORT_LEASES)

    @app.train(name="mail", aliases=aliases)
    async def mail(to: str, subject: str = "none") -> str:
        return f"new {to} {subject}"

    @app.train
    async def invoice(number: int) -> int:
        return number

    return app


def forgetful_app(dsn: str) -> Interlock:
    """The control: the train was renamed and does not answer to its old name."""
    return new_app(dsn, aliases=())


APPS = {"old": old_app, "new": new_app, "forgetful": forgetful_app}


async def serve(dsn: str, which: str) -> None:
    async with APPS[which](dsn).running(["worker"]):
        tell("up")
        await asyncio.Event().wait()


async def test_a_rolling_deploy_fails_nothing_and_what_only_new_code_knows_waits_for_it(works):
    old_server = works.fleet.start(f"{__name__}:serve", works.dsn, "old", name="old")
    await old_server.expect("up", 60)
    async with old_app(works.dsn) as old, new_app(works.dsn) as new:
        by_old = [await old.trains.get("send-mail").aenqueue(f"o{n}") for n in range(10)]
        unknown = await new.trains.get("invoice").aenqueue(7)
        renamed = await new.trains.get("mail").aenqueue("n", subject="hi")
        assert [await handle.aresult(timeout=60) for handle in by_old] == [f"old o{n}" for n in range(10)]
        assert [await unknown.astatus(), await renamed.astatus()] == ["queued", "queued"]
        new_server = works.fleet.start(f"{__name__}:serve", works.dsn, "new", name="new")
        await new_server.expect("up", 60)
        assert await unknown.aresult(timeout=60) == 7
        assert await renamed.aresult(timeout=60) == "new n hi"
        old_server.kill()
        late = [await old.trains.get("send-mail").aenqueue(f"l{n}") for n in range(10)]
        assert [await handle.aresult(timeout=60) for handle in late] == [f"new l{n} none" for n in range(10)]
    await eventually(lambda: _all_completed(works), 60, "nothing but completed work")


async def test_control_without_its_alias_what_the_old_code_queued_waits(works):
    server = works.fleet.start(f"{__name__}:serve", works.dsn, "forgetful", name="forgetful")
    await server.expect("up", 60)
    async with old_app(works.dsn) as old, forgetful_app(works.dsn) as new:
        waits = await old.trains.get("send-mail").aenqueue("o")
        assert await (await new.trains.get("invoice").aenqueue(7)).aresult(timeout=60) == 7
        with pytest.raises(ResultTimeout):
            await waits.aresult(timeout=1)
        assert await waits.astatus() == "queued"


async def _all_completed(works) -> bool:
    return {row["state"] for row in await works.executions("state")} == {"completed"}
