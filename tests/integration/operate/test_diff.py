"""What a deploy would change, told before it happens, and held against what it then does."""

from __future__ import annotations

import pytest

from interlock import Interlock, every
from interlock.operate.diff import differences


def shop(dsn: str, *, hours: int = 1, cap: int = 3, name: str | None = "shop", extra: str = "old") -> Interlock:
    app = Interlock(dsn, name=name)

    @app.train
    def pack(n: int = 1) -> None: ...

    group = app.group("etl", max_active_jobs=cap)
    app.schedule("pack", pack.bind(hours), every(hours=hours), group=group)
    app.schedule(extra, pack.bind(), every(days=1))
    return app


async def told(app: Interlock) -> dict[str, tuple[str, set[str], set[str]]]:
    found = await differences(await app.adatabase(), app.declarations, app.settings.runtime.name)
    await app.aclose()
    return {one.name: (one.what, set(one.fields), set(one.kept)) for one in found}


async def deploy(app: Interlock) -> None:
    async with app.running(["timers"]):
        pass


async def test_a_first_deploy_creates_all_and_a_second_changes_nothing(migrated):
    assert {name: what for name, (what, _, _) in (await told(shop(migrated))).items()} == {
        "etl": "create", "pack": "create", "old": "create",
    }  # fmt: skip
    await deploy(shop(migrated))
    assert await told(shop(migrated)) == {}


async def test_changes_of_code_and_switches_of_operators_are_told_apart(migrated):
    await deploy(shop(migrated))
    app = shop(migrated)
    await app.adisable("pack")
    await app.aset_group("etl", max_active_jobs=9)
    assert await told(app) == {"etl": ("keep", set(), {"max_active_jobs"}), "pack": ("keep", set(), {"enabled"})}
    assert await told(shop(migrated, hours=2, cap=4, extra="new")) == {
        "etl": ("change", {"max_active_jobs"}, set()),
        "pack": ("change", {"input", "schedule"}, {"enabled"}),
        "new": ("create", *(await _fields_of_new(migrated))),
        "old": ("prune", set(), set()),
    }


async def _fields_of_new(dsn: str) -> tuple[set[str], set[str]]:
    [new] = [fields for name, (_, fields, _) in (await told(shop(dsn, extra="new"))).items() if name == "new"]
    return new, set()


async def test_the_deploy_does_what_was_told(migrated, yard):
    await deploy(shop(migrated))
    app = shop(migrated)
    await app.adisable("pack")
    await app.aclose()
    newer = shop(migrated, hours=2, extra="new")
    async with newer.running(["timers"]):
        rows = await yard.conn.fetch("SELECT external_id, enabled FROM interlock.manifest ORDER BY 1")
    assert [tuple(row) for row in rows] == [("new", True), ("pack", False)]
    assert await told(shop(migrated, hours=2, extra="new")) == {"pack": ("keep", set(), {"enabled"})}


@pytest.mark.parametrize("name", ["other", None])
async def test_what_belongs_to_another_app_would_be_refused(migrated, name):
    await deploy(shop(migrated))
    found = await told(shop(migrated, name=name))
    assert found["pack"][0] == found["old"][0] == "refuse"
