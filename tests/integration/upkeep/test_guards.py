"""The controls of retention: without its guard, each of the rows that must stay goes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.store import sql

GUARDS = {
    "execution/forget": (
        "<> e.id",
        "d.execution_id = e.id",
        "e.ended_at < kept.since",
    ),
    "work_queue/forget": (
        "not q.key_held",
        "not coalesce((select e.ended_at is null from /*schema*/execution e where e.id = q.execution_id), false)",
        "q.left_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval",
    ),
    "dead_letter/forget": ("resolved_at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval",),
    "audit/forget": ("at < coalesce(:now::timestamptz, statement_timestamp()) - :older_than::interval",),
    "background_job/forget": (
        "not coalesce((select e.ended_at is null from /*schema*/execution e where e.id = j.execution_id), false)",
    ),
}
CASES = [(name, guard) for name, guards in GUARDS.items() for guard in guards]


async def kept_by(attic) -> set[tuple[str, int]]:
    """One row for each guard."""
    manifest = await attic.manifest("extract")
    success = await attic.ended(days=31, manifest=manifest)
    await attic.conn.execute("UPDATE interlock.manifest SET last_success_execution_id = $1", success)
    named = await attic.ended(days=31, failed=True)
    letter = await attic.dead_letter(days=None, execution=named)
    young = await attic.ended(days=0)
    key = await attic.left(await attic.ended(days=0, key="order:1"), timedelta(days=1))
    running = await attic.dispatch()
    await attic.conn.execute(
        "UPDATE interlock.work_queue SET left_at = now() - interval '1 day' WHERE execution_id = $1", running
    )
    lately = await attic.conn.fetchval("SELECT entry_id FROM interlock.execution WHERE id = $1", young)
    return {
        *(("execution", execution) for execution in (success, named, young, running)),
        *(("work_queue", entry) for entry in (key, lately)),
        ("work_queue", await attic.conn.fetchval("SELECT entry_id FROM interlock.execution WHERE id = $1", running)),
        ("dead_letter", letter),
        ("dead_letter", await attic.dead_letter(days=1)),
        ("audit", await attic.act(days=1)),
        ("background_job", running),
    }


async def there(attic) -> set[tuple[str, int]]:
    columns = dict.fromkeys(("execution", "work_queue", "dead_letter", "audit"), "id")
    columns["background_job"] = "execution_id"
    return {(table, id) for table, column in columns.items() for id in await attic.ids(table, column)}  # noqa: A001  the column


async def test_every_row_that_must_stay_stays(attic):
    kept = await kept_by(attic)
    await attic.retention().run()
    assert kept <= await there(attic)


@pytest.mark.parametrize(("name", "guard"), CASES, ids=lambda value: value.split("\n")[0][:60])
async def test_control_without_its_guard_a_row_that_must_stay_goes(attic, name, guard, monkeypatch):
    compiled = sql._compiled

    def unguarded(file: str, schema: str) -> sql.Statement:
        statement = compiled(file, schema)
        if file != name:
            return statement
        text = sql.source_of(file)
        assert guard in text
        if guard == "<> e.id":
            return sql.compile_statement(file, text.replace(guard, "<> -1"), schema)
        off = "false and" if guard.startswith("d.execution_id") else "true or"
        return sql.compile_statement(file, text.replace(guard, f"({off} ({guard}))"), schema)

    kept = await kept_by(attic)
    monkeypatch.setattr(sql, "_compiled", unguarded)
    await attic.retention().tick()
    assert not kept <= await there(attic)
