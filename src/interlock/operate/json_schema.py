"""Whether a JSON value fits a JSON Schema, for trains whose code is not here.

It knows what the schemas of trains are made of, and passes over words that it does not know: the server that runs the
train checks its input with the train's own types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Schema = dict[str, Any]

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("is below {}", lambda value, bound: value < bound),
    "maximum": ("is above {}", lambda value, bound: value > bound),
    "exclusiveMinimum": ("is not above {}", lambda value, bound: value <= bound),
    "exclusiveMaximum": ("is not below {}", lambda value, bound: value >= bound),
}
_LENGTHS: Mapping[str, tuple[str, Callable[[int, int], bool]]] = {
    "minLength": ("is shorter than {}", lambda length, bound: length < bound),
    "maxLength": ("is longer than {}", lambda length, bound: length > bound),
    "minItems": ("has fewer than {} items", lambda length, bound: length < bound),
    "maxItems": ("has more than {} items", lambda length, bound: length > bound),
}


def first_problem(value: Any, schema: Schema) -> str | None:
    """What is wrong with the value, beginning with the place; None if it fits."""
    for place, problem in _problems(value, schema, schema, ""):
        return f"{place.removeprefix('.')}: {problem}" if place else problem
    return None


def property_schema(schema: Schema, name: str) -> Schema:
    """The schema of one parameter, able to stand alone."""
    found = schema.get("properties", {}).get(name, {})
    return {**found, "$defs": schema["$defs"]} if "$defs" in schema else dict(found)


def _problems(value: Any, schema: Any, root: Schema, place: str) -> Iterator[tuple[str, str]]:
    if schema is True or not isinstance(schema, dict):
        return
    if "$ref" in schema:
        yield from _problems(value, _referred(schema["$ref"], root), root, place)
    for part in schema.get("allOf", ()):
        yield from _problems(value, part, root, place)
    yield from _alternatives(value, schema, root, place)
    yield from _of_kind(value, schema, place)
    if isinstance(value, dict):
        yield from _of_object(value, schema, root, place)
    if isinstance(value, list):
        yield from _of_items(value, schema, root, place)


def _referred(reference: str, root: Schema) -> Any:
    found: Any = root
    for key in reference.removeprefix("#/").split("/"):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found


def _alternatives(value: Any, schema: Schema, root: Schema, place: str) -> Iterator[tuple[str, str]]:
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and all(next(_problems(value, option, root, place), None) for option in options):
        wanted = " or ".join(str(option.get("type", "another form")) for option in options)
        yield place, f"expected {wanted}, found {value!r}"


def _of_kind(value: Any, schema: Schema, place: str) -> Iterator[tuple[str, str]]:
    wanted = schema.get("type")
    kinds = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if kinds and not any(_TYPES.get(kind, lambda _: True)(value) for kind in kinds):
        yield place, f"expected {' or '.join(kinds)}, found {value!r}"
        return
    if "const" in schema and not _same(value, schema["const"]):
        yield place, f"expected {schema['const']!r}, found {value!r}"
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield place, f"expected one of {', '.join(map(str, schema['enum']))}, found {value!r}"
    yield from ((place, problem) for problem in _out_of_bounds(value, schema))


def _same(one: Any, other: Any) -> bool:
    """Equal in JSON, where true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _out_of_bounds(value: Any, schema: Schema) -> Iterator[str]:
    if _TYPES["number"](value):
        for word, (text, is_out) in _BOUNDS.items():
            if word in schema and is_out(value, schema[word]):
                yield f"{value!r} {text.format(schema[word])}"
    if isinstance(value, str | list):
        for word, (text, is_wrong) in _LENGTHS.items():
            if word in schema and is_wrong(len(value), schema[word]):
                yield text.format(schema[word])
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{value!r} does not match {schema['pattern']}"


def _of_object(value: Schema, schema: Schema, root: Schema, place: str) -> Iterator[tuple[str, str]]:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield place, f"{name!r} is missing"
    for name, item in value.items():
        if name in known:
            yield from _problems(item, known[name], root, f"{place}.{name}")
        elif rest is False:
            yield place, f"{name!r} is unknown; there are: {', '.join(known) or 'none'}"
        else:
            yield from _problems(item, rest, root, f"{place}.{name}")


def _of_items(value: list[Any], schema: Schema, root: Schema, place: str) -> Iterator[tuple[str, str]]:
    first = schema.get("prefixItems", [])
    for index, item in enumerate(value):
        wanted = first[index] if index < len(first) else schema.get("items", True)
        if wanted is False:
            yield f"{place}[{index}]", "is one item too many"
        yield from _problems(item, wanted, root, f"{place}[{index}]")
