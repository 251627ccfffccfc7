"""Declarations: what is accepted, what is refused at the call, and that a refusal leaves nothing behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interlock.errors import (
    DeclarationAfterStart,
    DependencyCycle,
    DuplicateName,
    InvalidInput,
    InvalidOption,
    InvalidSchedule,
    PayloadTooLarge,
    UnknownManifest,
    UnknownTrain,
    UsageError,
)
from interlock.manifests.declare import Declarations
from interlock.manifests.settings import ManifestSettings
from interlock.manifests.surface import DeclaringApp
from interlock.model.exclusion import exclude
from interlock.model.plan import Misfire
from interlock.model.schedule import Cron, Dependent, Dormant, Manual, cron, every, once
from interlock.trains.options import Backoff
from interlock.trains.registry import Registry

HOURLY, MINUTE = every(hours=1), timedelta(minutes=1)


class App(DeclaringApp):
    _app_name = None
    adatabase = None  # declarations do no I/O

    def __init__(self, **settings) -> None:
        self.declarations = Declarations(Registry(), ManifestSettings(**settings), max_input_bytes=1000)


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def greet(app):
    @app.train
    async def greet(name: str = "Ada") -> str:
        return name

    return greet


def test_a_declaration_keeps_all_that_was_said(app, greet):
    etl = app.group("etl", max_active_jobs=3, priority=20, enabled=False)
    weekend = exclude.weekdays("sat", "sun")
    ref = app.schedule(
        "extract",
        greet.bind("Bob"),
        HOURLY,
        group=etl,
        tz="Europe/Berlin",
        variance=2 * MINUTE,
        exclude=[weekend],
        misfire="skip",
        misfire_threshold=5 * MINUTE,
        max_attempts=7,
        retry=Backoff(MINUTE, factor=3, max_delay=9 * MINUTE),
        timeout=30 * MINUTE,
        priority=63,
        enabled=False,
    )
    made = app.declarations.manifests[ref.external_id]
    assert (made.train, made.input, made.group) == ("greet", b'{"name":"Bob"}', "etl")
    assert (made.schedule, made.time_zone, made.exclusions) == (HOURLY, "Europe/Berlin", (weekend,))
    assert (made.variance, made.misfire, made.misfire_threshold) == (2 * MINUTE, Misfire.SKIP, 5 * MINUTE)
    assert (made.max_attempts, made.timeout, made.priority, made.enabled) == (7, 30 * MINUTE, 63, False)
    assert (made.retry_delay, made.retry_backoff, made.max_retry_delay) == (MINUTE, 3.0, 9 * MINUTE)
    assert app.declarations.groups["etl"].said() == {"max_active_jobs": 3, "priority": 20, "enabled": False}


def test_what_is_left_out_is_the_trains_or_the_settings():
    app = App(misfire="skip", misfire_threshold=9 * MINUTE)

    @app.train(group="heavy", max_attempts=2, timeout=MINUTE, priority=5, retry=Backoff(MINUTE, 4, 5 * MINUTE))
    def work() -> None: ...

    app.schedule("own", work.bind(), HOURLY, retry_delay=2 * MINUTE, group="light", priority=0)
    app.schedule("inherited", work.bind(), HOURLY)
    own, inherited = app.declarations.manifests["own"], app.declarations.manifests["inherited"]
    assert (own.group, own.priority, own.retry_delay) == ("light", 0, 2 * MINUTE)
    assert (own.retry_backoff, own.max_retry_delay, own.max_attempts) == (4.0, 5 * MINUTE, 2)
    assert (inherited.group, inherited.priority, inherited.timeout) == ("heavy", 5, MINUTE)
    assert (inherited.misfire, inherited.misfire_threshold) == (Misfire.SKIP, 9 * MINUTE)


def test_a_schedule_of_none_waits_for_somebody_to_trigger_it(app, greet):
    app.schedule("by-hand", greet.bind(), None)
    assert app.declarations.manifests["by-hand"].schedule == Manual()


def test_a_cron_without_a_zone_of_its_own_is_read_in_the_manifests(app, greet):
    app.schedule("here", greet.bind(), cron("0 3 * * *"), tz="Europe/Berlin")
    app.schedule("there", greet.bind(), cron("0 3 * * *", tz="Asia/Tokyo"), tz="Europe/Berlin")
    app.schedule("everywhere", greet.bind(), cron("0 3 * * *", tz="UTC"), tz="Europe/Berlin")
    here, there, everywhere = app.declarations.manifests.values()
    assert (here.schedule, here.time_zone) == (Cron("0 3 * * *", "Europe/Berlin"), "Europe/Berlin")
    assert (there.schedule, there.time_zone) == (Cron("0 3 * * *", "Asia/Tokyo"), "Europe/Berlin")
    assert (everywhere.schedule, everywhere.time_zone) == (Cron("0 3 * * *", "UTC"), "Europe/Berlin")


def test_dependents_know_their_parent(app, greet):
    extract = app.schedule("extract", greet.bind(), HOURLY)
    load = extract.then("load", greet.bind(), max_attempts=1)
    load.then("repair", greet.bind(), dormant=True)
    schedules = {name: made.schedule for name, made in app.declarations.manifests.items()}
    assert schedules == {"extract": HOURLY, "load": Dependent("extract"), "repair": Dormant("load")}
    graph = app.declarations.graph
    assert (graph.roots(), graph.children()) == (["extract"], {"extract": ["load"], "load": ["repair"]})
    assert list(graph.ancestors("repair")) == ["repair", "load", "extract"]


def test_many_are_called_by_prefix_and_key_and_lead_to_many(app, greet):
    tables = app.schedule_many("sync", [("a", greet.bind("a")), (7, greet.bind("b"))], HOURLY)
    checks = tables.then_many("check", [(7, greet.bind()), ("a", greet.bind())])
    tables["a"].then_many("fan", [(n, greet.bind()) for n in range(2)], dormant=True)
    assert (list(tables), list(checks)) == (["a", "7"], ["7", "a"])
    parents = {name: made.parent for name, made in app.declarations.manifests.items()}
    assert parents == {
        "sync-a": None,
        "sync-7": None,
        "check-7": "sync-7",
        "check-a": "sync-a",
        "fan-0": "sync-a",
        "fan-1": "sync-a",
    }


NOW = datetime(2030, 1, 1, tzinfo=UTC)


def hasty(app):
    return app.train(name="hasty", retry=Backoff(MINUTE, max_delay=MINUTE))(lambda: None)


WRONG = {
    "a cron that is none": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), cron("61 * * * *"))),
    "a negative interval": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), every(minutes=-1))),
    "no schedule at all": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), "hourly")),
    "a schedule that names a parent": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), Dependent("y"))),
    "a wrong input": (InvalidInput, lambda a, t: a.schedule("x", t.bind(3), HOURLY)),
    "an input that is too large": (PayloadTooLarge, lambda a, t: a.schedule("x", t.bind("x" * 1000), HOURLY)),
    "a train without its input": (InvalidOption, lambda a, t: a.schedule("x", t, HOURLY)),
    "exclusions that cover every time": (
        InvalidSchedule,
        lambda a, t: a.schedule("x", t.bind(), cron("0 3 * * sun"), exclude=[exclude.weekdays("sat", "sun")]),
    ),
    "an unknown zone": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), HOURLY, tz="Europe/Atlantis")),
    "a zone that is no text": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), HOURLY, tz=3)),
    "an empty group": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, group="")),
    "a group declared without a name": (InvalidOption, lambda a, _: a.group("")),
    "a group of low rank": (InvalidOption, lambda a, _: a.group("g", priority=-1)),
    "a group of too high rank": (InvalidOption, lambda a, _: a.group("g", priority=32)),
    "a cap of nothing": (InvalidOption, lambda a, _: a.group("g", max_active_jobs=0)),
    "a switch that is no switch": (InvalidOption, lambda a, _: a.group("g", enabled="yes")),
    "a priority below zero": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, priority=-1)),
    "a priority above the highest": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, priority=64)),
    "no attempt": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, max_attempts=0)),
    "a timeout of nothing": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, timeout=timedelta(0))),
    "an endless timeout": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, timeout=timedelta.max)),
    "a negative variance": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), HOURLY, variance=-MINUTE)),
    "a variance as long as the interval": (
        InvalidSchedule,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, variance=60 * MINUTE),
    ),
    "a variance on a manual one": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), None, variance=MINUTE)),
    "a single run with an exclusion": (
        InvalidSchedule,
        lambda a, t: a.schedule("x", t.bind(), once(at=NOW), exclude=[exclude.weekdays("tue")]),
    ),
    "an exclusion that is none": (InvalidSchedule, lambda a, t: a.schedule("x", t.bind(), HOURLY, exclude=["sat"])),
    "exclusions in no list": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, exclude="sat")),
    "an unknown misfire policy": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, misfire="panic")),
    "a negative threshold": (
        InvalidSchedule,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, misfire_threshold=-MINUTE),
    ),
    "a shrinking backoff": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, retry_backoff=0.5)),
    "a backoff that no column holds": (
        InvalidOption,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, retry_backoff=10**400),
    ),
    "no delay": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, retry_delay=timedelta(0))),
    "a longest delay below the first": (
        InvalidOption,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, retry_delay=2 * MINUTE, max_retry_delay=MINUTE),
    ),
    "a first delay beyond the longest of the settings": (
        InvalidOption,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, retry_delay=61 * MINUTE),
    ),
    "a first delay beyond the longest of the train": (
        InvalidOption,
        lambda a, _: a.schedule("x", hasty(a).bind(), HOURLY, retry_delay=2 * MINUTE),
    ),
    "a backoff said twice": (
        InvalidOption,
        lambda a, t: a.schedule("x", t.bind(), HOURLY, retry=Backoff(MINUTE), retry_delay=MINUTE),
    ),
    "a retry that is no backoff": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, retry=MINUTE)),
    "a switch that is a number": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, enabled=1)),
    "a misspelt option": (InvalidOption, lambda a, t: a.schedule("x", t.bind(), HOURLY, grop="etl")),
    "an item that is no pair": (InvalidOption, lambda a, t: a.schedule_many("x", [t.bind()], HOURLY)),
    "items that are none": (InvalidOption, lambda a, _: a.schedule_many("x", None, HOURLY)),
    "an item without a train": (InvalidOption, lambda a, _: a.schedule_many("x", [("a", 3)], HOURLY)),
    "a prefix without text": (InvalidOption, lambda a, t: a.schedule_many("", [("a", t.bind())], HOURLY)),
    "one wrong item among many": (
        InvalidOption,
        lambda a, t: a.schedule_many("x", [("a", t.bind()), ("b\0", t.bind())], HOURLY),
    ),
    "a key twice": (DuplicateName, lambda a, t: a.schedule_many("x", [("1", t.bind()), (1, t.bind())], HOURLY)),
    "a taken id among many": (DuplicateName, lambda a, t: a.schedule_many("ta", [("ken", t.bind())], HOURLY)),
    "a taken id": (DuplicateName, lambda a, t: a.schedule("ta-ken", t.bind(), HOURLY)),
}
HOSTILE = ["", " x", "x ", "a\0b", "a\nb", "\x1b[2J", "\u202eevil", "x" * 201, 3, None, b"x", "\ud800"]


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_named_at_the_call_and_leaves_nothing_behind(app, greet, mistake):
    app.schedule("ta-ken", greet.bind(), HOURLY)
    error, call = WRONG[mistake]
    with pytest.raises(error) as refused:
        call(app, greet)
    assert isinstance(refused.value, UsageError)
    assert (list(app.declarations.manifests), list(app.declarations.groups)) == (["ta-ken"], [])


@pytest.mark.parametrize("external_id", HOSTILE, ids=repr)
def test_an_id_that_cannot_be_shown_is_refused(app, greet, external_id):
    parent = app.schedule("parent", greet.bind(), HOURLY)
    for call in (
        lambda: app.schedule(external_id, greet.bind(), HOURLY),
        lambda: parent.then(external_id, greet.bind()),
    ):
        with pytest.raises(InvalidOption):
            call()
    assert list(app.declarations.manifests) == ["parent"]


def test_a_set_of_exclusions_is_the_same_declaration_in_every_process(app, greet):
    days = [exclude.dates(f"2030-01-{day:02}") for day in range(1, 21)]
    app.schedule("x", greet.bind(), HOURLY, exclude=set(days))
    assert list(app.declarations.manifests["x"].exclusions) == sorted(days, key=repr)


def test_quotes_and_markup_are_only_text(app, greet):
    for external_id in ("o'brien; drop table manifest;--", "<script>alert(1)</script>", "ключ/日本"):
        assert app.schedule(external_id, greet.bind(), HOURLY).external_id == external_id


def test_a_train_of_another_app_is_unknown(app, greet):
    other = App()

    @other.train
    async def greet(name: str = "Ada") -> str:
        return name

    with pytest.raises(UnknownTrain, match=r"greet \(of another app\)'; known: greet"):
        app.schedule("x", greet.bind(), HOURLY)
    with pytest.raises(UnknownTrain, match="greet"):
        App().schedule("x", greet.bind(), HOURLY)


def test_a_manifest_cannot_wait_for_itself(app, greet):
    extract = app.schedule("extract", greet.bind(), HOURLY)
    with pytest.raises(DependencyCycle) as refused:
        extract.then("extract", greet.bind())
    assert refused.value.members == ["extract"]


def test_a_cycle_is_refused_with_its_members_named(app, greet):
    a = app.schedule("a", greet.bind(), HOURLY)
    c = a.then("b", greet.bind()).then("c", greet.bind())
    with pytest.raises(DependencyCycle, match="a → c → b → a"):
        c.then("a", greet.bind())
    assert app.declarations.manifests["a"].parent is None


def test_a_parent_that_this_app_did_not_declare_is_unknown(app, greet):
    other = App()

    @other.train
    def work() -> None: ...

    stranger = other.schedule("stranger", work.bind(), HOURLY)
    app.schedule("own", greet.bind(), HOURLY)
    with pytest.raises(UnknownManifest, match="stranger"):
        app.declarations._depend([(stranger, "x", greet.bind())], dormant=False, options={})
    with pytest.raises(UnknownTrain):
        stranger.then("x", greet.bind())


def test_a_key_that_the_parents_do_not_have_is_unknown(app, greet):
    tables = app.schedule_many("sync", [("a", greet.bind())], HOURLY)
    with pytest.raises(UnknownManifest, match="'b'"):
        tables.then_many("check", [("a", greet.bind()), ("b", greet.bind())])
    assert list(app.declarations.manifests) == ["sync-a"]


def test_a_variance_on_a_dependent_is_refused(app, greet):
    extract = app.schedule("extract", greet.bind(), HOURLY)
    for dormant in (True, False):
        with pytest.raises(InvalidSchedule, match="variance"):
            extract.then("load", greet.bind(), dormant=dormant, variance=MINUTE)


def test_after_the_start_every_declaration_is_refused(app, greet):
    ref, many = app.schedule("x", greet.bind(), HOURLY), app.schedule_many("m", [("a", greet.bind())], HOURLY)
    app.declarations.freeze()
    app.declarations.trains.freeze()
    for advice, late in (
        ("with put_schedule", lambda: app.schedule("y", greet.bind(), HOURLY)),
        ("with put_schedule", lambda: app.schedule_many("y", [("a", greet.bind())], HOURLY)),
        ("with set_group", lambda: app.group("late")),
        ("with put_schedule", lambda: ref.then("y", greet.bind())),
        ("with put_schedule", lambda: ref.then_many("y", [("a", greet.bind())])),
        ("with put_schedule", lambda: many.then_many("y", [("a", greet.bind())])),
        ("say which trains they know", lambda: app.train(lambda: None, name="late")),
        ("say which trains they know", lambda: app.chain("late", greet)),
    ):
        with pytest.raises(DeclarationAfterStart, match=f"declare it at import.* {advice}"):
            late()
    assert list(app.declarations.manifests) == ["x", "m-a"]


def test_at_run_time_a_description_needs_either_a_time_or_a_parent(app, greet):
    app.declarations.freeze()
    assert app.declarations.describe("x", greet.bind(), parent="y").schedule == Dependent("y")
    assert app.declarations.describe("x", greet.bind(), parent="y", dormant=True).schedule == Dormant("y")
    for wrong in ({"when": HOURLY, "parent": "y"}, {"dormant": True}, {"parent": ""}, {"parent": 3}):
        with pytest.raises(InvalidOption):
            app.declarations.describe("x", greet.bind(), **wrong)
    always = [exclude.window("00:00", "12:00"), exclude.window("12:00", "00:00")]
    with pytest.raises(InvalidSchedule, match="would never run, because its exclusions cover"):
        app.declarations.describe("x", greet.bind(), HOURLY, exclude=always)
    with pytest.raises(DependencyCycle, match="x → x"):
        app.declarations.describe("x", greet.bind(), parent="x")
