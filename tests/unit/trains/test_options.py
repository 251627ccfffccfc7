import math
from datetime import timedelta

import pytest

from interlock.errors import InvalidOption
from interlock.trains.options import Backoff, TrainOptions
from interlock.trains.registry import Registry


def work() -> None: ...


async def async_work() -> None: ...


NAMELESS = (lambda: None,)[0]


class Group:
    name = "etl"


def test_every_option_is_kept_as_declared():
    retry = Backoff(timedelta(seconds=5))
    train = Registry().train(
        name="import",
        aliases=["load"],
        group="etl",
        max_attempts=5,
        timeout=timedelta(minutes=1),
        priority=63,
        process=True,
        concurrency=2,
        tags={"gpu"},
        retry=retry,
        retention=timedelta(days=365),
    )(work)

    assert train.name == "import"
    assert train.options == TrainOptions(
        aliases=("load",),
        group="etl",
        max_attempts=5,
        timeout=timedelta(minutes=1),
        priority=63,
        process=True,
        concurrency=2,
        tags=frozenset({"gpu"}),
        retry=retry,
        retention=timedelta(days=365),
    )


def test_a_declared_group_stands_for_its_name():
    assert Registry().train(work, group=Group()).options.group == "etl"


def test_a_misspelt_option_is_refused_with_the_nearest_and_declares_nothing():
    trains = Registry()
    with pytest.raises(InvalidOption, match=r"max_atempts=3; .*; did you mean max_attempts\?$"):
        trains.train(max_atempts=3)
    with pytest.raises(InvalidOption, match="did you mean timeout"):
        trains.train(work, timeuot=timedelta(minutes=1))
    with pytest.raises(InvalidOption, match="did you mean retry"):
        trains.chain("import", work, retries=3)
    assert len(trains) == 0


@pytest.mark.parametrize("option", [{"name": "other"}, {"process": True}])
def test_a_chain_refuses_what_only_a_single_function_can_have(option):
    with pytest.raises(InvalidOption, match="one of the options"):
        Registry().chain("import", work, **option)


def test_options_left_out_are_left_to_the_settings():
    assert Registry().train(work).options == TrainOptions()


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("name", ""),
        ("name", "x" * 201),
        ("name", "two\nlines"),
        ("name", "nul\0"),
        ("name", " padded "),
        ("name", 7),
        ("name", "\ud800"),
        ("aliases", ["a", "a"]),
        ("aliases", "one-text"),
        ("aliases", [""]),
        ("group", ""),
        ("group", 3),
        ("max_attempts", 0),
        ("max_attempts", True),
        ("max_attempts", 1.5),
        ("timeout", timedelta()),
        ("timeout", timedelta(seconds=-1)),
        ("timeout", 10),
        ("priority", -1),
        ("priority", 64),
        ("priority", True),
        ("process", 1),
        ("concurrency", 0),
        ("tags", "gpu"),
        ("tags", [""]),
        ("retry", 5),
        ("retention", timedelta()),
        ("retention", 30),
    ],
)
def test_a_bad_option_is_refused_where_it_is_declared(option, found):
    registry = Registry()
    with pytest.raises(InvalidOption) as refused:
        registry.train(work, **{option: found})
    assert refused.value.option == option
    assert not registry.names()


def test_an_async_function_cannot_run_in_a_process():
    with pytest.raises(InvalidOption, match="process=True"):
        Registry().train(async_work, process=True)


def test_a_function_that_a_child_cannot_import_cannot_run_in_a_process():
    def local() -> None: ...

    for function in (local, NAMELESS):
        with pytest.raises(InvalidOption, match="module level"):
            Registry().train(function, name="local", process=True)


@pytest.mark.parametrize(
    ("delay", "factor", "max_delay"),
    [
        (timedelta(), 2.0, timedelta(hours=1)),
        (5, 2.0, timedelta(hours=1)),
        (timedelta(seconds=1), 0.5, timedelta(hours=1)),
        (timedelta(seconds=1), math.nan, timedelta(hours=1)),
        (timedelta(seconds=1), math.inf, timedelta(hours=1)),
        (timedelta(seconds=1), 1e39, timedelta(hours=1)),
        (timedelta(seconds=1), True, timedelta(hours=1)),
        (timedelta(hours=2), 2.0, timedelta(hours=1)),
    ],
)
def test_a_backoff_that_cannot_back_off_is_refused(delay, factor, max_delay):
    with pytest.raises(InvalidOption):
        Backoff(delay, factor, max_delay)


def test_a_backoff_grows_by_its_factor_up_to_its_limit():
    backoff = Backoff(timedelta(seconds=10), factor=3, max_delay=timedelta(minutes=1))
    assert [backoff.after(failures).total_seconds() for failures in (1, 2, 3, 100_000)] == [10, 30, 60, 60]
