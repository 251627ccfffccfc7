import math
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest

from interlock.errors import InvalidOutput
from interlock.trains.registry import Registry


@dataclass
class Report:
    rows: int
    title: str


def train_returning(annotation):
    def make() -> None: ...

    make.__annotations__["return"] = annotation
    return Registry().train(make, name="make").signature


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Report, Report(1, "x")), (int, 3), (None, None), (list[Report], [Report(2, "y")]), (dict[int, str], {1: "a"})],
)
def test_an_output_comes_back_as_the_declared_type(annotation, value):
    signature = train_returning(annotation)
    assert signature.decode_output(signature.encode_output(value)) == value


@pytest.mark.parametrize("annotation", [Any, NoReturn])
def test_an_output_without_a_declared_type_is_stored_as_it_is(annotation):
    signature = train_returning(annotation)
    assert signature.decode_output(signature.encode_output({"a": (1, None)})) == {"a": [1, None]}


def test_a_function_may_leave_its_return_unannotated():
    def make():
        return 1

    assert Registry().train(make).signature.encode_output(1) == b"1"


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (str, 3, "expected `str`, got `int`"),
        (None, 3, "expected `null`, got `int`"),
        (Report, Report("1", "x"), "rows: expected `int`, got `str`"),
        (Any, object(), "a value of type object cannot be written"),
        (str, "\0", "the value: a NUL character"),
        (str, "\ud800", "the value: a lone surrogate"),
        (float | None, math.nan, "the value: nan has no place"),
        (str, b"abc", "bytes would arrive as base64 text"),
        (Any, bytearray(b"abc"), "bytes would arrive as base64 text"),
        (bytes, "YWJj", "expected `bytes`, got `str`"),
        (Any, [math.nan], "[0]: nan has no place"),
    ],
)
def test_an_output_that_cannot_be_stored_names_the_train_and_the_place(annotation, value, problem):
    with pytest.raises(InvalidOutput) as refused:
        train_returning(annotation).encode_output(value)
    assert refused.value.train == "make"
    assert refused.value.problem.startswith(problem)


def test_an_output_of_another_version_that_does_not_fit_is_an_invalid_output():
    with pytest.raises(InvalidOutput, match="train 'make': expected `int`, got `str`"):
        train_returning(int).decode_output(b'"x"')
