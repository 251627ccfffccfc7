"""The input of a run on the command line: --arg name=value, typed by the train's schema, over --input as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from interlock.cli.options import option
from interlock.errors import InvalidInput, InvalidOption
from interlock.operate.arguments import typed_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.app import Interlock

arg_option = option(
    "--arg", "args", multiple=True, metavar="NAME=VALUE", help="An argument, typed by the train's schema; repeatable."
)
input_option = option("--input", "json_input", metavar="JSON", help="The whole input as a JSON object.")


def pairs(args: Iterable[str]) -> list[tuple[str, str]]:
    """The names and texts of --arg."""
    found: dict[str, str] = {}
    for arg in args:
        name, equals, text = arg.partition("=")
        if not name or not equals:
            raise InvalidOption(option="--arg", found=arg, expected="NAME=VALUE")
        if name in found:
            raise InvalidOption(option="--arg", found=arg, expected=f"one value; {name}={found[name]} came before")
        found[name] = text
    return list(found.items())


async def edited_input(
    app: Interlock, train: str, own: Any, texts: list[tuple[str, str]], json_input: str | None
) -> dict[str, Any]:
    """The given input, else the own one, with the arguments put in."""
    known = await app.views.train(train, app.trains)
    base = own if json_input is None else _parsed(known.name, json_input)
    if not isinstance(base, dict):
        raise InvalidInput(train=known.name, problem="it is not a JSON object")
    return {**base, **typed_arguments(known, texts)}


def _parsed(train: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(train=train, problem=f"it is not valid JSON: {error}") from None
