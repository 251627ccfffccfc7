from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import ContradictingSettings, InvalidSchemaName, InvalidSetting, UnknownSetting, UsageError
from interlock.model.setting_values import expectation, parse, spoken
from interlock.settings import Settings, known_options, load_settings, misspelt_variables, override, variable

NEEDED_BESIDE = {"default_job_timeout": {"INTERLOCK_STALE_IN_PROGRESS_TIMEOUT": "2h"}}
LEASE_OF_20 = '[tool.interlock]\nlease = "20s"\n'


@pytest.fixture
def load(tmp_path):
    def loaded(*, toml: str = "", environment: dict[str, str] | None = None, **arguments):
        (tmp_path / "pyproject.toml").write_text(toml, "utf-8")
        return load_settings(arguments, environment=environment or {}, folder=tmp_path)

    return loaded


def origins(settings: Settings) -> dict[str, str]:
    return {name: origin for name, _, origin in settings.options()}


def test_without_any_source_every_option_has_its_default(tmp_path):
    settings = load_settings(environment={}, folder=tmp_path)
    assert settings == Settings()
    assert set(origins(settings).values()) == {"default"}


def test_the_file_is_weaker_than_the_environment_which_is_weaker_than_an_argument(load):
    by_file = load(toml=LEASE_OF_20)
    by_variable = load(toml=LEASE_OF_20, environment={"INTERLOCK_LEASE": "30s"})
    by_argument = load(toml=LEASE_OF_20, environment={"INTERLOCK_LEASE": "30s"}, lease=timedelta(seconds=40))
    found = [(each.runtime.lease, origins(each)["lease"]) for each in (by_file, by_variable, by_argument)]
    assert found == [
        (timedelta(seconds=20), "pyproject.toml [tool.interlock]"),
        (timedelta(seconds=30), "INTERLOCK_LEASE"),
        (timedelta(seconds=40), "argument"),
    ]


def test_a_flag_wins_over_every_other_source_and_leaves_the_rest_alone(load):
    base = load(toml=LEASE_OF_20, environment={"INTERLOCK_WORKER_SLOTS": "7"}, schema="ours")
    changed = override(base, {"schema": "theirs"})
    assert (changed.store.schema, changed.worker.worker_slots) == ("theirs", 7)
    assert origins(changed) == origins(base) | {"schema": "--schema"}


def test_a_flag_is_checked_like_any_other_source(load):
    with pytest.raises(InvalidSchemaName):
        override(load(), {"schema": "a;b"})
    with pytest.raises(ContradictingSettings):
        override(load(), {"lease": timedelta(seconds=1)})


@pytest.mark.parametrize("name", sorted(known_options()))
def test_every_option_can_be_set_by_its_variable(load, name):
    section, kind = known_options()[name]
    text = _accepted(name, kind)
    loaded = load(environment={variable(name): text, **NEEDED_BESIDE.get(name, {})})
    assert origins(loaded)[name] == variable(name)
    assert str(spoken(getattr(getattr(loaded, section), name))).lower() in {text, f"('{text}',)"}


def _accepted(name: str, kind: object) -> str:
    """A text that this option takes and that is not its default."""
    special = {"heartbeat": "700ms", "outbox_emit_timeout": "7s", "outbox_lease": "40s", "lock_backend": "memory"}
    if name in special:
        return special[name]
    if get_origin(kind) is Literal:
        return get_args(kind)[-1]
    options = [kind, *get_args(kind)]
    texts = {timedelta: "50m", bool: "false", int: "5", float: "3.5"}
    return next((text for option, text in texts.items() if option in options), "value")


def test_the_database_of_the_argument_wins_over_ours_over_the_common_variable_over_the_file(load):
    toml = '[tool.interlock]\ndsn = "postgresql://file/x"\n'
    common = {"DATABASE_URL": "postgresql://common/x"}
    ours = common | {"INTERLOCK_DSN": "postgresql://ours/x"}
    found = [
        load(toml=toml).store.dsn,
        load(toml=toml, environment=common).store.dsn,
        load(toml=toml, environment=ours).store.dsn,
        load(toml=toml, environment=ours, dsn="postgresql://argument/x").store.dsn,
        load(environment=ours, dsn=None).store.dsn,
    ]
    assert found == [f"postgresql://{name}/x" for name in ("file", "common", "ours", "argument", "ours")]


def test_an_empty_variable_counts_as_unset(load):
    assert load(environment={"INTERLOCK_LEASE": "", "DATABASE_URL": ""}) == load()


def test_none_in_a_variable_or_the_file_switches_off_what_may_be_none(load):
    settings = load(
        toml='[tool.interlock]\nmax_queued_jobs_per_cycle = "none"\n',
        environment={"INTERLOCK_MAX_WORK_QUEUE_ENTRIES_PER_CYCLE": "None"},
    )
    assert settings.dispatch.max_queued_jobs_per_cycle is None
    assert settings.manifests.max_work_queue_entries_per_cycle is None


def test_the_shorthand_sets_both_intervals_and_says_so(load):
    settings = load(environment={"INTERLOCK_POLLING_INTERVAL": "9s"})
    assert settings.manifests.manifest_manager_polling_interval == timedelta(seconds=9)
    assert settings.dispatch.job_dispatcher_polling_interval == timedelta(seconds=9)
    assert origins(settings)["job_dispatcher_polling_interval"] == "INTERLOCK_POLLING_INTERVAL (polling_interval)"


@pytest.mark.parametrize("order", [1, -1])
def test_the_shorthand_is_weaker_than_what_it_stands_for_whatever_is_written_first(load, order):
    both = {"polling_interval": 9, "job_dispatcher_polling_interval": 4}
    chosen = dict(list(both.items())[::order])
    by_argument = load(**chosen)
    by_variable = load(environment={variable(name): str(value) for name, value in chosen.items()})
    by_file = load(toml="[tool.interlock]\n" + "".join(f"{name} = {value}\n" for name, value in chosen.items()))
    for settings in (by_argument, by_variable, by_file):
        assert settings.dispatch.job_dispatcher_polling_interval == timedelta(seconds=4)
        assert settings.manifests.manifest_manager_polling_interval == timedelta(seconds=9)


def test_a_stronger_shorthand_wins_over_a_weaker_full_name(load):
    settings = load(environment={"INTERLOCK_JOB_DISPATCHER_POLLING_INTERVAL": "4s"}, polling_interval=9)
    assert settings.dispatch.job_dispatcher_polling_interval == timedelta(seconds=9)


def test_an_unknown_option_names_the_nearest_and_its_origin(load):
    with pytest.raises(UnknownSetting, match=r"'lese' \(from argument\); did you mean 'lease'\?"):
        load(lese=3)
    with pytest.raises(UnknownSetting, match=r"'pool-size' \(from pyproject.toml .*\); did you mean 'pool_size'\?"):
        load(toml="[tool.interlock]\npool-size = 3\n")
    with pytest.raises(UnknownSetting, match="`interlock config` lists them all"):
        load(qqqqqqqq=3)


def test_a_misspelt_variable_is_found_and_those_of_others_are_left_alone():
    environment = {
        "INTERLOCK_LESE": "3",
        "INTERLOCK_POOLSIZE": "3",
        "INTERLOCK_HOME": "/x",
        "INTERLOCK_APP": "a:b",
        "INTERLOCK_JSON": "1",
        "INTERLOCK_LEASE": "3",
        "INTERLOCK_POLLING_INTERVAL": "3",
        "INTERLOCK_SERVICE_HOST": "10.0.0.1",
        "INTERLOCK_PORT_5432_TCP": "tcp://10.0.0.1:5432",
        "LEASE": "3",
    }
    assert list(misspelt_variables(environment)) == [
        ("INTERLOCK_LESE", "INTERLOCK_LEASE"),
        ("INTERLOCK_POOLSIZE", "INTERLOCK_POOL_SIZE"),
    ]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"heartbeat": 4, "lease": 10}, "heartbeat=4s contradicts lease=10s"),
        ({"heartbeat": 3.34}, "heartbeat=3340ms contradicts lease=10s"),
        ({"lease": 8}, "heartbeat=3s contradicts lease=8s"),
        (
            {"stale_in_progress_timeout": "20m"},
            "stale_in_progress_timeout=20m contradicts default_job_timeout=20m",
        ),
        ({"default_job_timeout": "2h"}, "stale_in_progress_timeout=1h contradicts default_job_timeout=2h"),
        ({"max_concurrent_dispatch": 10}, "max_concurrent_dispatch=10 contradicts pool_size=10"),
        ({"pool_size": 1}, "max_concurrent_dispatch=1 contradicts pool_size=1"),
        ({"max_retry_delay": "1m"}, "max_retry_delay=1m contradicts retry_delay=5m"),
        ({"outbox_emit_timeout": 30}, "outbox_emit_timeout=30s contradicts outbox_lease=30s"),
        ({"lock_backend": "redis"}, "lock_backend=redis contradicts redis_url=None"),
        (
            {"outbox_mode": "ordered", "lock_backend": "memory"},
            "outbox_mode=ordered contradicts lock_backend=memory",
        ),
    ],
)
def test_a_contradiction_is_refused_with_both_values_named(load, arguments, named):
    with pytest.raises(ContradictingSettings) as refused:
        load(**arguments)
    assert str(refused.value).startswith(f"{named}: ")


@pytest.mark.parametrize(
    "arguments",
    [
        {"heartbeat": 3, "lease": 9},
        {"stale_in_progress_timeout": "21m"},
        {"max_concurrent_dispatch": 9},
        {"max_retry_delay": "5m"},
        {"outbox_emit_timeout": 29},
        {"lock_backend": "redis", "redis_url": "redis://h"},
    ],
)
def test_values_at_the_edge_of_a_contradiction_are_accepted(load, arguments):
    load(**arguments)


def test_a_contradiction_between_two_sources_is_found(load):
    with pytest.raises(ContradictingSettings, match="heartbeat=6s contradicts lease=15s"):
        load(toml='[tool.interlock]\nlease = "15s"\n', environment={"INTERLOCK_HEARTBEAT": "6s"})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("lease", "soon", "a duration"),
        ("lease", "1 fortnight", "a duration"),
        ("lease", True, "a duration"),
        ("lease", [3], "a duration"),
        ("lease", "-3s", "a duration"),
        ("lease", -3, "more than zero"),
        ("lease", timedelta(0), "more than zero"),
        ("lease", "0.0001ms", "more than zero"),
        ("lease", float("nan"), "a duration"),
        ("lease", float("inf"), "a duration"),
        ("lease", "9" * 400, "a duration"),
        ("lease", "99999999999999d", "a duration"),
        ("lease", timedelta(days=40000), "at most 36500d"),
        ("tick_statement_timeout", "400us", "a duration"),
        ("tick_statement_timeout", timedelta(microseconds=400), "at least a millisecond"),
        ("tick_statement_timeout", "30d", "at most 1d"),
        ("settle_window", timedelta(microseconds=1), "at least a millisecond"),
        ("pool_size", "ten", "a whole number"),
        ("pool_size", 2.5, "a whole number"),
        ("pool_size", "2.5", "a whole number"),
        ("pool_size", True, "a whole number"),
        ("pool_size", 0, "more than zero"),
        ("pool_size", -1, "more than zero"),
        ("pool_size", 10**6, "at most 10000"),
        ("cleanup_batch", 2**31, "at most 2147483647"),
        ("cleanup_batch", 10**400, "at most 2147483647"),
        ("statement_cache_size", -1, "zero or more"),
        ("dependent_priority_boost", 64, "at most 63"),
        ("retry_backoff", float("inf"), "a number"),
        ("retry_backoff", float("nan"), "a number"),
        ("retry_backoff", 10**400, "a number"),
        ("retry_backoff", "twice", "a number"),
        ("retry_backoff", "-1", "more than zero"),
        ("retry_backoff", "0.5", "at least 1"),
        ("outbox_enabled", "perhaps", "true or false"),
        ("outbox_enabled", 2, "true or false"),
        ("misfire", "explode", "'fire_once' | 'skip'"),
        ("misfire", ["skip"], "'fire_once' | 'skip'"),
        ("exclude_from_max_active_jobs", 3, "names, separated by commas"),
        ("exclude_from_max_active_jobs", "a,,b", "names, separated by commas"),
        ("exclude_from_max_active_jobs", ["a", 3], "names, separated by commas"),
        ("server_name", "", "a text"),
        ("server_name", "   ", "a text"),
        ("server_name", "a\0b", "a text"),
        ("server_name", "\x1b[2J", "a text"),
        ("server_name", "\udc80", "a text"),
        ("server_name", 3, "a text"),
        ("max_attempts", None, "a whole number"),
    ],
)
def test_a_wrong_value_names_itself_its_origin_and_what_was_expected(load, name, value, expected):
    with pytest.raises(InvalidSetting) as refused:
        load(**{name: value})
    assert refused.value.setting == name
    assert refused.value.expected.startswith(expected)
    assert "(from argument)" in str(refused.value)


@pytest.mark.parametrize("name", ["a;b", 'x"y', "pg_catalog", "Upper", "", "a" * 41, "é", None, 3])
def test_a_hostile_schema_name_is_refused(load, name):
    with pytest.raises(InvalidSchemaName):
        load(schema=name)


@pytest.mark.parametrize("option", ["dsn", "redis_url"])
@pytest.mark.parametrize(
    "value", [b"postgresql://u:hunter2@h/x", "postgresql://u:hunter2@h/x\0", ["postgresql://u:hunter2@h/x"]]
)
def test_a_refused_address_does_not_show_its_password(load, option, value):
    with pytest.raises(InvalidSetting) as refused:
        load(**{option: value})
    assert "hunter2" not in f"{refused.value} {refused.value!r}"


def test_the_settings_do_not_show_a_password_when_printed(load):
    settings = load(dsn="postgresql://me:s3cret@h/db", redis_url="redis://:s3cret@h", lock_backend="redis")
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("30s", 30),
        ("5m", 300),
        ("5 min", 300),
        ("2H", 7200),
        (" 7d ", 604800),
    ],
)
def test_durations_are_read_with_and_without_a_unit(load, text, seconds):
    assert load(environment={"INTERLOCK_EXECUTION_RETENTION": text}).upkeep.execution_retention == timedelta(
        seconds=seconds
    )


@given(st.timedeltas(timedelta(milliseconds=1), timedelta(days=36500)).filter(lambda span: span > timedelta(0)))
def test_a_shown_duration_reads_back_as_itself(duration):
    assert parse("lease", spoken(duration), timedelta, "argument") == duration


@given(
    st.sampled_from(sorted(known_options())),
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.text())),
)
def test_whatever_is_passed_gives_settings_or_a_typed_error(name, value):
    with suppress(UsageError):
        load_settings({name: value}, environment={})


@given(st.sampled_from(sorted(known_options())), st.text(min_size=1))
def test_whatever_a_variable_holds_gives_settings_or_a_typed_error(name, text):
    with suppress(UsageError):
        load_settings(environment={variable(name): text})


@pytest.mark.parametrize("text", ["tool = 1", "[tool]\ninterlock = 3", "[tool", "[[tool.interlock]]\nlease = 3"])
def test_a_file_that_does_not_hold_a_table_is_named(load, text):
    with pytest.raises(InvalidSetting, match=r"pyproject\.toml"):
        load(toml=text)


def test_a_file_in_another_encoding_is_named(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b'[tool.interlock]\nname = "\xe9"\n')
    with pytest.raises(InvalidSetting, match=r"pyproject\.toml"):
        load_settings(environment={}, folder=tmp_path)


def test_a_file_without_our_table_and_the_name_of_the_app_in_it_are_no_settings(load):
    assert load(toml="[project]\nname = 'x'\n") == load(toml='[tool.interlock]\napp = "shop:app"\n') == load()


def test_the_environment_of_the_process_and_the_current_folder_are_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(LEASE_OF_20, "utf-8")
    monkeypatch.setitem(os.environ, "INTERLOCK_WORKER_SLOTS", "3")
    settings = load_settings()
    assert (settings.runtime.lease, settings.worker.worker_slots) == (timedelta(seconds=20), 3)


def test_every_type_of_an_option_can_say_what_it_expects():
    assert all(expectation(kind) for _, kind in known_options().values())
