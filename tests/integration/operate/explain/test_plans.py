"""Why a manifest is not queued: time, switches, parents, its own work."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock import cron, every, exclude
from interlock.errors import InvalidOption, UnknownManifest, UnknownTimer, UnknownWork
from interlock.operate.fires import coming_fires
from tests.integration.operate.explain.station import HOUR, START


async def test_what_is_planned_for_later_says_when_and_how_to_run_it_now(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1))
    await station.server()
    await station.ticks("manifests", "dispatch", "worker")
    why = await station.why("hourly")
    assert list(why) == ["SCHEDULED_LATER"]
    assert why["SCHEDULED_LATER"].details["at"] == START + HOUR
    assert "2030-05-06 13:00:00Z (in 1 h), every hour" in why["SCHEDULED_LATER"].evidence
    assert why["SCHEDULED_LATER"].command == "interlock manifests trigger hourly"


async def test_a_manifest_that_is_switched_off_says_how_to_switch_it_on(station):
    station.app.schedule("it's off", station.work.bind(), every(hours=1))
    await station.server()
    await station.app.adisable("it's off")
    why = await station.why("it's off")
    assert list(why) == ["MANIFEST_DISABLED"]
    assert why["MANIFEST_DISABLED"].command == """interlock manifests enable 'it'"'"'s off'"""


async def test_a_disabled_group_blocks_what_is_planned_and_what_is_queued(station):
    group = station.app.group("etl")
    station.app.schedule("hourly", station.work.bind(), every(hours=1), group=group)
    await station.server()
    await station.conn.execute("UPDATE interlock.manifest_group SET enabled = false WHERE name = 'etl'")
    assert await station.codes("hourly") == ["GROUP_DISABLED"]
    await station.work.using(group="etl").aenqueue()
    why = await station.why(f"entry:{await station.entry()}")
    assert list(why) == ["GROUP_DISABLED"]
    assert why["GROUP_DISABLED"].details == {"group": "etl"}


@pytest.mark.parametrize(
    ("hold", "words", "mark"),
    [
        (lambda app: app.adisable("hourly"), "it is switched off", "manifest disabled"),
        (lambda app: app.aset_group("etl", enabled=False), "its group etl is switched off", "group disabled"),
        (lambda app: app.apause("work"), "the train work is paused", "paused"),
        (lambda app: app.apause(), "all trains are paused", "paused"),
    ],
)
async def test_a_plan_that_is_held_back_is_not_told_as_one_that_comes(station, hold, words, mark):
    station.app.schedule("hourly", station.work.bind(), every(hours=1), group=station.app.group("etl"))
    await station.server()
    await station.ticks("manifests", "dispatch", "worker")
    assert await station.standing("hourly") == "the manifest hourly is planned for 2030-05-06 13:00:00Z (in 1 h)"
    await hold(station.app)
    standing = await station.standing("hourly")
    assert standing == f"the manifest hourly is held back: {words}; its plan is 2030-05-06 13:00:00Z (in 1 h)"
    why = await station.why("hourly")
    assert why["SCHEDULED_LATER"].evidence == "it is not due before 2030-05-06 13:00:00Z (in 1 h), every hour"
    [fire] = coming_fires(await station.app.views.plans("hourly"), 1)
    assert fire.marks == (mark,)


async def test_an_excluded_time_says_until_when(station):
    station.app.schedule("weekly", station.work.bind(), every(hours=1), exclude=[exclude.weekdays("mon")])
    await station.server()
    why = await station.why("weekly")
    assert list(why) == ["SCHEDULED_LATER", "EXCLUDED_WINDOW"]
    assert why["EXCLUDED_WINDOW"].details["until"] == START + 12 * HOUR


async def test_a_dependent_waits_for_a_success_it_has_not_consumed(station):
    parent = station.app.schedule("extract", station.work.bind(), every(hours=1))
    parent.then("load", station.work.bind())
    await station.server()
    why = await station.why("load")
    assert list(why) == ["PARENT_NOT_SUCCEEDED"]
    assert "extract has never succeeded" in why["PARENT_NOT_SUCCEEDED"].evidence
    assert why["PARENT_NOT_SUCCEEDED"].command == "interlock explain extract"
    await station.step.drain()
    why = await station.why("load")
    assert list(why) == ["PARENT_NOT_SUCCEEDED"]
    assert "waits for the next" in why["PARENT_NOT_SUCCEEDED"].evidence


async def test_a_disabled_parent_is_named(station):
    station.app.schedule("extract", station.work.bind(), every(hours=1)).then("load", station.work.bind())
    await station.server()
    await station.app.adisable("extract")
    why = await station.why("load")
    assert list(why) == ["PARENT_NOT_SUCCEEDED", "PARENT_DISABLED"]
    assert why["PARENT_DISABLED"].command == "interlock manifests enable extract"


async def test_a_dormant_manifest_says_who_would_have_to_activate_it(station):
    parent = station.app.schedule("extract", station.work.bind(), every(hours=1))
    parent.then("repair", station.work.bind(), dormant=True)
    await station.server()
    why = await station.why("repair")
    assert list(why) == ["DORMANT"]
    assert "extract" in why["DORMANT"].evidence


async def test_an_open_dead_letter_blocks_its_manifest_and_explains_its_execution(station):
    station.app.schedule("fragile", station.fail.bind(), every(hours=1), max_attempts=1)
    await station.server()
    await station.ticks("manifests", "dispatch", "worker")
    letter = await station.conn.fetchval("SELECT id FROM interlock.dead_letter")
    why = await station.why("fragile")
    assert list(why) == ["SCHEDULED_LATER", "DEAD_LETTER_BLOCKS"]
    assert why["DEAD_LETTER_BLOCKS"].command == f"interlock dead-letters requeue {letter}"
    standing = await station.standing("fragile")
    assert standing.startswith(f"the manifest fragile is held back: dead letter {letter} waits for a person; ")
    [fire] = coming_fires(await station.app.views.plans("fragile"), 1)
    assert fire.marks == (f"dead letter {letter} blocks it",)
    assert await station.codes(f"execution:{await station.execution()}") == ["DEAD_LETTER_BLOCKS"]
    await station.app.dead_letters.aacknowledge(letter, note="known")
    assert await station.codes("fragile") == ["SCHEDULED_LATER"]


async def test_what_is_queued_or_active_already_is_named_with_what_it_waits_for(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1))
    await station.server()
    await station.ticks("manifests")
    why = await station.why("hourly")
    assert list(why) == ["ALREADY_QUEUED"]
    assert why["ALREADY_QUEUED"].details == {"entry": str(await station.entry())}
    await station.ticks("dispatch")
    why = await station.why("hourly")
    assert list(why) == ["ALREADY_ACTIVE", "CLAIMED_NOT_STARTED"]
    assert why["ALREADY_ACTIVE"].command == f"interlock executions cancel {await station.execution()}"


async def test_a_pause_of_one_train_and_of_all_is_told_apart(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1))
    await station.server()
    await station.app.apause("work")
    why = await station.why("hourly")
    assert list(why) == ["PAUSED"]
    assert why["PAUSED"].command == "interlock resume work"
    await station.app.apause()
    assert (await station.why("hourly"))["PAUSED"].command == "interlock resume"
    await station.work.aenqueue()
    assert await station.codes(f"entry:{await station.entry()}") == ["PAUSED"]


@pytest.mark.parametrize("schedule", [every(hours=1), cron("0 * * * *")])
async def test_a_fire_that_was_left_out_for_being_late_is_named_before_and_after(station, schedule):
    station.app.schedule("strict", station.work.bind(), schedule, misfire="skip")
    step = await station.server()
    step.advance(HOUR)
    await station.ticks("manifests", "dispatch", "worker")
    assert "MISFIRE_SKIPPED" not in await station.codes("strict")
    missed = await station.conn.fetchval("SELECT planned_at FROM interlock.manifest")
    step.advance(missed - step.now + timedelta(minutes=5))
    why = await station.why("strict")
    assert "will be left out" in why["MISFIRE_SKIPPED"].evidence
    await station.ticks("manifests")
    why = await station.why("strict")
    assert list(why) == ["SCHEDULED_LATER", "MISFIRE_SKIPPED"]
    assert why["MISFIRE_SKIPPED"].details == {"missed": missed}
    step.advance(await station.conn.fetchval("SELECT planned_at FROM interlock.manifest") - step.now)
    await station.ticks("manifests", "dispatch", "worker")
    assert await station.codes("strict") == ["SCHEDULED_LATER"]


async def test_a_manifest_that_cannot_be_written_shows_the_error_and_the_next_try(station):
    station.app.schedule("broken", station.work.bind(), every(hours=1))
    await station.server()
    await station.conn.execute("""UPDATE interlock.manifest SET schedule = '{"kind": "every"}'""")
    await station.ticks("manifests")
    why = await station.why("broken")
    assert list(why) == ["WRITE_ERROR"]
    assert why["WRITE_ERROR"].details["at"] > START
    assert why["WRITE_ERROR"].details["error"] in why["WRITE_ERROR"].evidence


async def test_a_manifest_that_is_overdue_although_nothing_blocks_it_says_that_the_scheduler_stalled(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1))
    step = await station.server()
    step.advance(timedelta(seconds=10))
    assert await station.codes("hourly") == []
    step.advance(timedelta(minutes=5))
    why = await station.why("hourly")
    assert list(why) == ["SCHEDULER_STALLED"]
    assert "due 5 min 10 s ago" in why["SCHEDULER_STALLED"].evidence


async def test_without_a_manager_nothing_is_queued_by_its_schedule(station):
    station.app.schedule("hourly", station.work.bind(), every(hours=1))
    await station.server()
    await station.conn.execute("UPDATE interlock.server SET roles = '{worker}'")
    why = await station.why("hourly")
    assert list(why) == ["SCHEDULER_STALLED"]
    assert "no live server has the role manifests" in why["SCHEDULER_STALLED"].evidence


async def test_what_does_not_exist_and_what_cannot_be_read_is_a_typed_error(station):
    await station.client()
    for subject, error in {
        "nothing": UnknownManifest,
        "manifest:nothing": UnknownManifest,
        "manifest:42": UnknownManifest,
        "42": InvalidOption,
        "entry:1": UnknownWork,
        "execution:99999999999999999999": UnknownWork,
        "timer:nothing": UnknownTimer,
        "entry:": InvalidOption,
        "entry:x": InvalidOption,
        "execution:-1": InvalidOption,
    }.items():
        with pytest.raises(error):
            await station.app.aexplain(subject)
