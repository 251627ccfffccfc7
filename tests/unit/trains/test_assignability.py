from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NewType, Optional, Protocol, TypedDict, TypeVar, Union

import pytest

from interlock.trains.assignability import assignable

T = TypeVar("T")
UserId = NewType("UserId", int)


class Base: ...


class Derived(Base): ...


class Movie(TypedDict):
    title: str


class Reads(Protocol):
    def read(self) -> bytes: ...


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (int, int),
        (bool, int),
        (int, float),
        (int, complex),
        (Derived, Base),
        (int, object),
        (Any, int),
        (int, Any),
        (None, None),
        (None, type(None)),
        (int, int | None),
        (None, Optional[int]),  # noqa: UP045  both spellings are in use
        (int | None, Union[None, int, str]),  # noqa: UP007  both spellings are in use
        (int | bool, float),
        (list[int], list[int]),
        (list[bool], list[int]),
        (list[int], list),
        (list, list[int]),
        (list[int], Sequence[int]),
        (list[int], Iterable[float]),
        (dict[str, int], Mapping[str, int]),
        (dict[str, int], Iterable[str]),
        (dict[str, list[int]], dict[str, Sequence[int]]),
        (tuple[int, str], tuple[int, str]),
        (tuple[int, int], tuple[int, ...]),
        (tuple[int, int], Sequence[int]),
        (tuple[int, ...], Collection[int]),
        (Literal["a"], Literal["a", "b"]),
        (Literal["a"], str),
        (Literal[1, "a"], int | str),
        (UserId, int),
        (UserId, UserId),
        (Annotated[int, "x"], int),
        (int, Annotated[int, "x"]),
        (Movie, Movie),
        (Movie, dict),
        (int, T),
        (Base, Reads),
        (Callable[[int], str], Callable[[int], str]),
        (type[int], type),
    ],
)
def test_fits(source, target):
    assert assignable(source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (int, str),
        (float, int),
        (str, bytes),
        (Base, Derived),
        (None, int),
        (int | None, int),
        (int | str, int | bytes),
        (list[int], list[str]),
        (list[int | None], list[int]),
        (list[int], dict[str, int]),
        (set[int], Sequence[int]),
        (dict[str, int], dict[str, str]),
        (dict[str, int], Iterable[int]),
        (tuple[int, str], tuple[int, int]),
        (tuple[int, int], tuple[int, int, int]),
        (tuple[int, str], Sequence[int]),
        (Literal["a", "c"], Literal["a", "b"]),
        (str, Literal["a"]),
        (Literal[1], str),
        (int, UserId),
        (dict[str, Any], Movie),
        (object, int),
    ],
)
def test_does_not_fit(source, target):
    assert not assignable(source, target)
