"""Errors and events have no generated code, and still are to their users what a dataclass is."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from interlock.errors import InterlockError
from interlock.fields import WithFields
from interlock.observe.events.base import Event


class Parent(WithFields):
    kind: ClassVar[str] = "parent"
    name: str
    size: int = 1


class Child(Parent):
    kind: ClassVar[str] = "child"
    colour: str
    size: int = 2


@dataclasses.dataclass(kw_only=True)
class Model:
    """What `Child` would be as a dataclass."""

    name: str
    size: int = 2
    colour: str


def test_the_fields_are_those_that_a_dataclass_would_have():
    def told(kind) -> list[tuple[str, object, object, bool]]:
        return [(each.name, each.type, each.default, each.kw_only) for each in dataclasses.fields(kind)]

    assert told(Child) == told(Model)
    assert told(Child(name="x", colour="red")) == told(Model)


def test_defaults_apply_and_the_order_of_the_source_is_kept():
    assert list(vars(Child(colour="red", name="x")).items()) == [("name", "x"), ("size", 2), ("colour", "red")]
    assert repr(Child(colour="red", name="x")) == "Child(name='x', size=2, colour='red')"
    assert dataclasses.replace(Child(colour="red", name="x"), size=5).size == 5


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "x"}, "missing: colour"),
        ({"name": "x", "colour": "red", "weight": 1}, "unknown: weight"),
        ({"name": "x", "weight": 1}, "unknown: weight; missing: colour"),
    ],
)
def test_a_wrong_field_is_named(values, said):
    with pytest.raises(TypeError, match=said):
        Child(**values)
    with pytest.raises(TypeError):
        Child("by position")


def test_a_default_of_a_parent_may_be_overridden_where_it_had_none():
    class Easier(Child):
        colour: str = "blue"

    assert Easier(name="x").colour == "blue"


class Mended(WithFields):
    where: str

    def __post_init__(self) -> None:
        vars(self)["where"] = self.where.strip()


def test_what_was_passed_can_be_mended():
    assert Mended(where=" here ").where == "here"


class Happened(Event):
    text: ClassVar[str] = "{what} happened"
    what: str


def test_an_event_cannot_be_changed():
    event = Happened(what="it")
    for change in (lambda: setattr(event, "what", "other"), lambda: delattr(event, "what")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(pickle.loads(pickle.dumps(event))) == hash(event)


@dataclasses.dataclass(kw_only=True, eq=False)
class OwnError(InterlockError):
    found: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnEvent(Happened):
    more: int = 0


def test_a_dataclass_of_a_user_may_inherit_from_both():
    assert pickle.loads(pickle.dumps(OwnError(found="x"))).found == "x"
    assert OwnEvent(what="it", more=2).message() == "it happened"
    assert list(inspect.signature(OwnEvent).parameters) == ["what", "more"]
