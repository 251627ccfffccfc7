"""What happens when PostgreSQL refuses an entry: the others are queued, and it is set aside."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.manifests.create_work_queue_entries import FIRST_PAUSE, LONGEST_PAUSE, pause_after
from interlock.observe.events.manifest import ManifestWriteFailed
from tests.integration.manifests.manager.world import HOUR

POISON = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.train = 'poison' THEN RAISE EXCEPTION 'no % here', new.train; END IF;
    RETURN new;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON interlock.work_queue FOR EACH ROW EXECUTE FUNCTION refuse();
"""


async def test_one_bad_manifest_harms_nobody_and_is_set_aside_with_its_error(world):
    await world.conn.execute(POISON)
    good = [await world.manifest(f"good-{number}") for number in range(3)]
    bad = await world.manifest("bad", train="poison")
    more = await world.manifest("more")
    cycle = await world.tick()
    assert (cycle.queued, cycle.refused) == (4, 1)
    assert sorted(entry["manifest_id"] for entry in await world.entries()) == sorted([*good, more])
    row = await world.row(bad)
    assert "no poison here" in row["write_error"]
    assert row["write_failures"] == 1
    assert row["write_retry_at"] == row["next_run_at"] == world.now + FIRST_PAUSE
    assert row["planned_at"] == world.now
    assert [event.external_id for event in world.of(ManifestWriteFailed)] == ["bad"]


async def test_what_was_set_aside_is_tried_again_after_growing_pauses_and_heals_by_itself(world):
    await world.conn.execute(POISON)
    bad = await world.manifest("bad", train="poison")
    for failures in range(1, 4):
        assert (await world.tick()).refused == 1
        assert (await world.tick()).due == 0
        assert (await world.row(bad))["write_failures"] == failures
        world.clock.advance(FIRST_PAUSE * 2 ** (failures - 1))
    await world.conn.execute("DROP TRIGGER refuse ON interlock.work_queue")
    assert (await world.tick()).queued == 1
    row = await world.row(bad)
    assert (row["write_error"], row["write_failures"], row["write_retry_at"]) == (None, 0, None)
    [entry] = await world.entries(bad)
    assert entry["fire_key"] == "2030-05-06T12:00:00.000000+00:00"


def test_the_pause_grows_up_to_an_hour():
    assert [pause_after(failures) / FIRST_PAUSE for failures in range(4)] == [1, 2, 4, 8]
    assert pause_after(10_000) == LONGEST_PAUSE == HOUR


@pytest.mark.parametrize(
    "columns",
    [
        {"schedule": {"kind": "every", "interval_us": 1, "since": "a newer version"}},
        {"exclusions": '[{"kind": "full moon"}]'},
        {"time_zone": "Atlantis/Poseidonis", "exclusions": '[{"kind": "weekdays", "names": ["sun"]}]'},
    ],
)
async def test_what_cannot_be_read_is_set_aside_alone(world, columns):
    bad = await world.manifest("bad", **columns)
    await world.manifest("good")
    cycle = await world.tick()
    assert (cycle.queued, cycle.refused) == (1, 1)
    row = await world.row(bad)
    assert row["write_error"]
    assert row["next_run_at"] == world.now + FIRST_PAUSE


async def test_an_entry_that_is_there_already_is_not_written_again_and_the_plan_moves_on(world):
    """The index is the backstop: here a person set the plan back to a fire that has had its run."""
    manifest = await world.manifest("m")
    noon = world.now
    await world.tick()
    await world.run_next(manifest)
    await world.conn.execute("UPDATE interlock.manifest SET planned_at = $1, next_run_at = $1", noon)
    assert (await world.tick()).queued == 0
    assert len(await world.entries(manifest)) == 1
    row = await world.row(manifest)
    assert row["planned_at"] == row["next_run_at"] == noon + HOUR


async def test_a_failure_that_is_not_about_the_row_ends_the_cycle_and_leaves_nothing(world):
    await world.conn.execute(POISON.replace("RAISE EXCEPTION 'no % here', new.train", "PERFORM pg_sleep(20)"))
    world.database.settings = type(world.database.settings)(tick_statement_timeout=timedelta(seconds=0.3))
    await world.manifest("good")
    bad = await world.manifest("bad", train="poison")
    with pytest.raises(Exception, match="statement timeout"):
        await world.tick()
    assert await world.entries() == []
    assert (await world.row(bad))["write_error"] is None
