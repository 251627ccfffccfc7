import json
import math
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

import msgspec
import pytest

from interlock.errors import InvalidTrain
from interlock.trains.registry import Registry


@dataclass
class Node:
    name: str
    children: "list[Node]"


def report(
    day: date,
    kind: Literal["short", "long"] = "short",
    tree: Node | None = None,
    since: date = date(2026, 1, 1),
    odd: int = object(),
) -> None: ...


def test_a_train_has_one_json_schema_of_its_input():
    schema = Registry().train(report, name="daily-report").signature.json_schema
    assert schema == {
        "title": "daily-report",
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "kind": {"enum": ["long", "short"], "default": "short"},
            "tree": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None},
            "since": {"type": "string", "format": "date", "default": "2026-01-01"},
            "odd": {"type": "integer"},
        },
        "required": ["day"],
        "additionalProperties": False,
        "$defs": {
            "Node": {
                "title": "Node",
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                },
                "required": ["name", "children"],
            }
        },
    }
    assert json.loads(json.dumps(schema)) == schema


def texts(separator: str = "\0", lost: str = "\ud800", longest: float = math.inf) -> None: ...


def test_a_default_that_cannot_be_stored_is_left_out():
    train = Registry().train(texts)
    properties = train.signature.json_schema["properties"]
    assert [properties[name].get("default", "none") for name in ("separator", "lost", "longest")] == ["none"] * 3
    assert train.bind().value == {}


def spoilt(kind: Literal["a", "b\0"]) -> None: ...


def described(text: Annotated[str, msgspec.Meta(description="\ud800")]) -> None: ...


@pytest.mark.parametrize("function", [spoilt, described])
def test_a_schema_that_cannot_be_stored_is_refused_at_the_declaration(function):
    registry = Registry()
    with pytest.raises(InvalidTrain, match="JSON Schema of its input cannot be stored"):
        registry.train(function)
    assert len(registry) == 0


def test_a_train_without_parameters_takes_an_empty_object():
    schema = Registry().train(name="tick")(lambda: None).signature.json_schema
    assert schema["properties"] == {}
    assert schema["required"] == []


def test_the_schema_of_a_chain_is_that_of_its_first_junction():
    def first(count: int) -> str:
        return str(count)

    def second(text: str) -> bytes:
        return text.encode()

    schema = Registry().chain("two", first, second).signature.json_schema
    assert schema["title"] == "two"
    assert list(schema["properties"]) == ["count"]
