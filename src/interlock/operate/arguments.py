"""The input of a run as people write it: `name=value` texts, or JSON, checked against what the train takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidInput, PayloadTooLarge, UnknownTrain
from interlock.operate.json_schema import first_problem, property_schema
from interlock.store.known_train import KnownTrain, KnownTrains
from interlock.trains.storable import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog
    from interlock.trains.registry import Registry


async def known_train(conn: Connection, sql: Catalog, trains: Registry, name: str) -> KnownTrain:
    """What this code, else some server, knows of the train."""
    try:
        train = trains.get(name)
    except UnknownTrain as unknown:
        found = await KnownTrains(sql).get(conn, name)
        if found is None:
            names = {*unknown.known, *await KnownTrains(sql).names(conn)}
            raise UnknownTrain(name=name, known=sorted(names)) from None
        return found
    options = train.options
    return KnownTrain(train.name, options.group, train.signature.json_schema, aliases=options.aliases)


def typed_arguments(train: KnownTrain, texts: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of `name=value` texts, in the types that the train takes."""
    return {name: _typed(train, name, text) for name, text in texts}


def encoded_input(train: KnownTrain, value: Any, trains: Registry, *, limit: int) -> str:
    """The checked input as JSON: by the train's own types where its code is here, else by its schema."""
    problem = first_problem(value, train.input_schema) if isinstance(value, dict) else "it is not a JSON object"
    if problem is not None:
        raise InvalidInput(train=train.name, problem=problem)
    try:
        raw = encode(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(train=train.name, problem=str(error)) from error
    if len(raw) > limit:
        raise PayloadTooLarge(what=f"the input of {train.name!r}", size=len(raw), limit=limit)
    if train.name in trains.names():
        trains.get(train.name).signature.decode(raw)
    return raw.decode()


def _typed(train: KnownTrain, name: str, text: str) -> Any:
    """What the text means as JSON if that fits, else the text itself: a number in quotes is never needed."""
    schema = train.input_schema
    properties: Mapping[str, Any] = schema.get("properties", {})
    if schema and name not in properties:
        known = ", ".join(properties) or "none"
        raise InvalidInput(train=train.name, problem=f"parameter {name!r} is unknown; there are: {known}")
    wanted = property_schema(schema, name)
    for value in _readings(text):
        if first_problem(value, wanted) is None:
            return value
    raise InvalidInput(train=train.name, problem=f"{name}: {first_problem(_readings(text)[0], wanted)}")


def _readings(text: str) -> list[Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        return [text]
    return [text] if isinstance(parsed, str) else [parsed, text]
