import enum
import math
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InvalidInput
from interlock.trains.registry import Registry
from interlock.trains.storable import DEEPEST


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Address:
    street: str
    number: int = 1
    previous: "list[Address]" = field(default_factory=list)


@dataclass
class Positive:
    value: int

    def __post_init__(self) -> None:
        if self.value <= 0:
            raise KeyError(self.value)


class Options(TypedDict, total=False):
    verbose: bool
    label: str


class Point(NamedTuple):
    x: int
    y: float


class Event(msgspec.Struct):
    at: datetime
    kind: Literal["start", "stop"]


UserId = NewType("UserId", int)


def train_of(annotation, *, name="take"):
    def take(value) -> None: ...

    take.__annotations__["value"] = annotation
    return Registry().train(take, name=name)


# PostgreSQL has neither NUL nor lone surrogates.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
finite = st.floats(allow_nan=False, allow_infinity=False)
moments = st.datetimes(timezones=st.just(UTC))

SUPPORTED = {
    "bool": (bool, st.booleans()),
    "int": (int, st.integers(-(2**63), 2**64 - 1)),
    "float": (float, finite),
    "str": (str, texts),
    "none": (None, st.none()),
    "bytes": (bytes, st.binary()),
    "datetime": (datetime, moments | st.datetimes()),
    "date": (date, st.dates()),
    "time": (time, st.times()),
    "timedelta": (timedelta, st.timedeltas(timedelta(days=-1000), timedelta(days=1000))),
    "uuid": (uuid.UUID, st.uuids()),
    "decimal": (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    "enum": (Color, st.sampled_from(Color)),
    "int enum": (Level, st.sampled_from(Level)),
    "literal": (Literal["a", 2], st.sampled_from(["a", 2])),
    "optional": (Optional[int], st.none() | st.integers(0, 9)),  # noqa: UP045  both spellings are in use
    "union": (int | str | list[int], st.integers(0, 9) | texts | st.lists(st.integers(0, 9))),
    "list": (list[date], st.lists(st.dates())),
    "set": (set[str], st.sets(texts)),
    "frozenset": (frozenset[int], st.frozensets(st.integers(0, 9))),
    "tuple": (tuple[int, str], st.tuples(st.integers(0, 9), texts)),
    "long tuple": (tuple[int, ...], st.lists(st.integers(0, 9)).map(tuple)),
    "dict": (dict[str, float], st.dictionaries(texts, finite)),
    "int keys": (dict[int, str], st.dictionaries(st.integers(-9, 9), texts)),
    "date keys": (dict[date, int], st.dictionaries(st.dates(), st.integers(0, 9))),
    "uuid keys": (dict[uuid.UUID, int], st.dictionaries(st.uuids(), st.integers(0, 9))),
    "dataclass": (Address, st.builds(Address, texts, st.integers(0, 9), st.lists(st.builds(Address, texts)))),
    "typed dict": (Options, st.fixed_dictionaries({}, optional={"verbose": st.booleans(), "label": texts})),
    "named tuple": (Point, st.builds(Point, st.integers(0, 9), finite)),
    "struct": (Event, st.builds(Event, moments, st.sampled_from(["start", "stop"]))),
    "new type": (UserId, st.integers(0, 9)),
    "annotated": (Annotated[int, msgspec.Meta(ge=0)], st.integers(0, 9)),
    "any": (Any, st.recursive(st.none() | st.booleans() | texts, st.lists)),
}
TRAINS = {name: train_of(annotation, name=name) for name, (annotation, _) in SUPPORTED.items()}


@pytest.mark.parametrize("name", SUPPORTED)
@given(data=st.data())
def test_a_value_comes_back_as_it_went_in(name, data):
    value = data.draw(SUPPORTED[name][1])
    bound = TRAINS[name].bind(value)
    assert bound.value == {"value": value}
    assert type(bound.value["value"]) is type(value)
    assert bound.input.decode()


class Unknown:
    pass


def nested(depth: int) -> list[Any]:
    outer: list[Any] = []
    for _ in range(depth):
        outer = [outer]
    return outer


@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (str, 3, "value: expected `str`, got `int`"),
        (int, "3", "value: expected `int`, got `str`"),
        (str, b"Ada", "value: bytes would arrive as base64 text"),
        (int | str | None, bytearray(b"Ada"), "value: bytes would arrive as base64 text"),
        (Any, b"Ada", "value: bytes would arrive as base64 text"),
        (bytes, "YWJj", "value: expected `bytes`, got `str`"),
        (int, True, "value: expected `int`, got `bool`"),
        (int, 1.5, "value: expected `int`, got `float`"),
        (int, None, "value: expected `int`, got `null`"),
        (float, math.nan, "value: nan has no place in JSON"),
        (float | None, math.inf, "value: inf has no place in JSON"),
        (Any, {"a": [1, -math.inf]}, "value.a[1]: -inf has no place in JSON"),
        (str, "a\0b", "value: a NUL character cannot be stored"),
        (list[str], ["", "\0"], "value[1]: a NUL character"),
        (dict[str, int], {"\0": 1}, "value: in a key, a NUL character"),
        (str, "\ud800", "value: a lone surrogate"),
        (dict[str, str], {"k": "\udfff"}, "value.k: a lone surrogate"),
        (dict[str, int], {"\ud800": 1}, "value: in a key, a lone surrogate"),
        (list[dict[str, int]], [{"a": "b"}], "value[0][...]: expected `int`, got `str`"),
        (Address, {"number": 2}, "value: object missing required field `street`"),
        (Address, Address("here", "two"), "value.number: expected `int`, got `str`"),
        (Color, "green", "value: invalid enum value 'green'"),
        (Literal["a"], "b", "value: invalid enum value 'b'"),
        (datetime, "yesterday", "value: invalid RFC3339"),
        (uuid.UUID, "1", "value: invalid UUID"),
        (Annotated[int, msgspec.Meta(gt=0)], 0, "value: expected `int` >= 1"),
        (Positive, {"value": 0}, "KeyError: 0"),
        (Any, Unknown(), "value: a value of type Unknown cannot be written as JSON"),
        (Any, [1, object()], "value: a value of type object cannot be written as JSON"),
    ],
)
def test_a_bad_value_is_refused_at_bind_with_its_place(annotation, value, problem):
    with pytest.raises(InvalidInput) as refused:
        train_of(annotation).bind(value)
    assert refused.value.train == "take"
    assert refused.value.problem.startswith(problem)


@pytest.mark.parametrize("depth", [DEEPEST, 5000, 100_000])
def test_what_is_nested_deeper_than_every_version_of_python_can_read_is_refused(depth):
    with pytest.raises(InvalidInput, match=f"nested more than {DEEPEST} levels deep"):
        train_of(Any).bind(nested(depth))


def test_what_is_nested_as_deeply_as_is_allowed_or_merely_long_is_taken():
    deepest = nested(DEEPEST - 2)  # the arguments are a level of their own, the innermost list is another
    assert train_of(Any).bind(deepest).value == {"value": deepest}
    assert train_of(Any).bind([{"text": "[" * DEEPEST}] * DEEPEST).value


class Markup(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "escaped"


class Count(int): ...


class Ratio(float): ...


class Blob(bytes): ...


class Frozen(datetime): ...


class Price(Decimal): ...


@pytest.mark.parametrize(
    ("annotation", "value", "plain"),
    [
        (str, Markup("<b>"), "<b>"),
        (int, Count(3), 3),
        (float, Ratio(1.5), 1.5),
        (bytes, Blob(b"x"), b"x"),
        (datetime, Frozen(2026, 1, 2, 3, 4, 5, 6, UTC), datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
        (Decimal, Price("1.10"), Decimal("1.10")),
        (list[str], [Markup("<b>")], ["<b>"]),
        (Any, {"n": Count(3)}, {"n": 3}),
    ],
)
def test_a_value_of_a_subclass_is_stored_as_what_it_is_a_kind_of(annotation, value, plain):
    assert train_of(annotation).bind(value).value == {"value": plain}


def greet(name: str, times: int = 1, *, loud: bool = False) -> str:
    return name * times


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "missing a required argument: 'name'"),
        (("Ada", 1, True), {}, "too many positional arguments"),
        (("Ada",), {"name": "Bob"}, "multiple values for argument 'name'"),
        (("Ada",), {"shout": True}, "got an unexpected keyword argument 'shout'"),
    ],
)
def test_a_wrong_set_of_arguments_is_refused_and_told_the_right_one(args, kwargs, problem):
    with pytest.raises(InvalidInput) as refused:
        Registry().train(greet).bind(*args, **kwargs)
    assert problem in str(refused.value)
    assert "it takes (name: str, times: int = 1, *, loud: bool = False) -> str" in str(refused.value)


def test_an_input_holds_what_was_passed_by_name_and_nothing_else():
    train = Registry().train(greet)
    assert train.bind("Ada").input == b'{"name":"Ada"}'
    assert train.bind("Ada", 1).input == b'{"name":"Ada","times":1}'


def test_the_same_arguments_give_the_same_bytes():
    train = Registry().train(greet)
    assert train.bind(name="Ada", times=2).input == train.bind("Ada", 2).input
    anything = train_of(dict[int, set[str]])
    assert anything.bind({1: {"b", "a"}, 0: set()}).input == anything.bind({0: set(), 1: {"a", "b"}}).input


def test_a_backslash_before_u0000_is_no_nul_character():
    assert train_of(str).bind("\\u0000").value == {"value": "\\u0000"}


def test_a_parameter_may_bear_any_python_name():
    @Registry().train(name="odd")
    def odd(self: int, args: int, kwargs: int, raw: int, _hidden: int = 0) -> None: ...

    assert odd.bind(self=1, args=2, kwargs=3, raw=4).value == {"self": 1, "args": 2, "kwargs": 3, "raw": 4}


def test_a_bound_train_is_frozen_and_compares_by_what_it_will_do():
    train = Registry().train(greet)
    assert train.bind("Ada") == train.bind(name="Ada")
    assert train.bind("Ada") != train.bind("Bob")
    with pytest.raises(AttributeError):
        train.bind("Ada").input = b"{}"
