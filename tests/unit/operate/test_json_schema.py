"""What fits a schema of a train and what does not; and what a text on the command line means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import InvalidInput, PayloadTooLarge
from interlock.operate.arguments import encoded_input, typed_arguments
from interlock.operate.json_schema import first_problem
from interlock.store.known_train import KnownTrain
from interlock.trains.registry import Registry

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("ab1", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "next", "kind"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@dataclass
class Order:
    id: int
    next: Order | None = None


class Color(Enum):
    RED = "a"
    BLUE = "b"


ANNOTATIONS: list[Any] = [
    int,
    float,
    str,
    bool,
    None,
    int | None,
    str | int,
    list[int],
    tuple[int, str],
    tuple[int, ...],
    dict[str, int],
    Literal["a", 1],
    Color,
    Order,
    list[Order | None],
    Annotated[int, msgspec.Meta(ge=0, lt=3)],
    Annotated[str, msgspec.Meta(min_length=1, max_length=2, pattern="^a")],
    Annotated[list[int], msgspec.Meta(min_length=1, max_length=2)],
    Any,
]


@pytest.mark.parametrize("annotation", ANNOTATIONS, ids=str)
@given(value=JSON)
def test_it_judges_as_the_types_do_that_the_schema_was_made_from(annotation, value):
    """A float with a whole value is taken for an integer by msgspec, and not here: the one difference."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=annotation)
        fits = True
    except msgspec.ValidationError:
        fits = False
    if not _has_whole_float(value):
        assert (first_problem(value, msgspec.json.schema(annotation)) is None) is fits


def _has_whole_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_whole_float, value.values()))
    if isinstance(value, list):
        return any(map(_has_whole_float, value))
    return isinstance(value, float) and value.is_integer()


SCHEMA = {
    "properties": {
        "name": {"type": "string"},
        "times": {"type": "integer", "default": 1},
        "loud": {"type": "boolean"},
        "ratio": {"type": "number"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TRAIN = KnownTrain("greet", None, SCHEMA)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name=Ada", "Ada"),
        ("name=3", "3"),
        ("name=true", "true"),
        ('name="quoted"', '"quoted"'),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("times=3", 3),
        ("loud=true", True),
        ("ratio=1", 1),
        ("note=null", None),
        ("note=nothing", "nothing"),
        ("either=3", 3),
        ("either=x", "x"),
        ('tags=["a", "b"]', ["a", "b"]),
    ],
)
def test_a_text_means_what_the_train_takes(text, value):
    name, _, rest = text.partition("=")
    assert typed_arguments(TRAIN, [(name, rest)]) == {name: value}


@pytest.mark.parametrize(
    ("name", "text"), [("times", "x"), ("times", "true"), ("loud", "yes"), ("tags", "a"), ("no", "1")]
)
def test_a_text_that_the_train_would_not_take_is_refused(name, text):
    with pytest.raises(InvalidInput, match=name):
        typed_arguments(TRAIN, [(name, text)])


def test_a_train_without_a_schema_takes_what_the_text_says():
    assert typed_arguments(KnownTrain("t", None, {}), [("a", "1"), ("b", "x")]) == {"a": 1, "b": "x"}


def test_an_input_is_checked_by_the_types_of_code_that_is_here():
    trains = Registry()

    @trains.train
    def even(number: Annotated[int, msgspec.Meta(multiple_of=2)]) -> None: ...

    train = KnownTrain("even", None, {})
    assert encoded_input(train, {"number": 2}, trains, limit=100) == '{"number":2}'
    with pytest.raises(InvalidInput, match="number"):
        encoded_input(train, {"number": 3}, trains, limit=100)
    with pytest.raises(PayloadTooLarge):
        encoded_input(train, {"number": 2}, trains, limit=3)
