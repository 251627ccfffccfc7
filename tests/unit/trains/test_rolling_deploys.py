"""Inputs written by one version of a train and read by another."""

import pytest

from interlock.errors import InvalidInput
from interlock.trains.registry import Registry
from interlock.trains.run import run_train


def old(name: str) -> str:
    return name


def new(name: str, times: int = 2, suffix: str | None = None) -> str:
    return name * times + (suffix or "")


def renamed(title: str) -> str:
    return title


def train(function):
    return Registry().train(function, name="greet")


async def test_an_old_input_runs_with_the_defaults_of_new_parameters():
    assert await run_train(train(new), train(old).bind("Ada").input) == b'"AdaAda"'


async def test_a_new_caller_that_leaves_the_new_parameter_out_is_served_by_old_code():
    assert await run_train(train(old), train(new).bind("Ada").input) == b'"Ada"'


async def test_a_parameter_of_a_newer_version_fails_alone_and_is_named():
    with pytest.raises(InvalidInput, match=r"parameter 'times' is unknown to this version.*it takes \(name: str\)"):
        await run_train(train(old), train(new).bind("Ada", times=3).input)


async def test_a_required_parameter_that_the_old_input_lacks_is_named():
    def stricter(name: str, times: int) -> str:
        return name * times

    with pytest.raises(InvalidInput, match="parameter 'times' is missing"):
        await run_train(train(stricter), train(old).bind("Ada").input)


async def test_a_changed_type_is_named():
    def changed(name: int) -> str:
        return str(name)

    with pytest.raises(InvalidInput, match="name: expected `int`, got `str`"):
        await run_train(train(changed), train(old).bind("Ada").input)


@pytest.mark.parametrize("raw", [b"", b"{", b"null", b"[]", b'"x"', b"\xff", b'{"name":"\\ud800"}', b'{"name":1e999}'])
async def test_an_undecodable_input_is_an_invalid_input_and_does_not_run(raw):
    ran = []

    def record(name: str) -> None:
        ran.append(name)

    with pytest.raises(InvalidInput) as refused:
        await run_train(train(record), raw)
    assert refused.value.train == "greet"
    assert ran == []


async def test_an_input_read_from_the_database_as_text_runs_too():
    assert await run_train(train(old), '{"name": "Ada"}') == b'"Ada"'


async def test_a_default_is_the_very_object_of_the_function():
    marker = object()

    def uses_default(given: int = marker) -> bool:
        return given is marker

    assert await run_train(train(uses_default), b"{}") == b"true"
