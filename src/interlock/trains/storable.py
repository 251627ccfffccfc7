"""JSON as PostgreSQL can keep it.

`jsonb` has no NUL character, UTF-8 has no lone surrogates and JSON has no NaN or Infinity (which would turn into null
without a word). All three are refused here, with the place where they were found. The search walks the value, so it
runs only when the encoded bytes give reason to suspect one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

_encode = msgspec.json.Encoder(order="deterministic").encode


class Unstorable(ValueError):
    """A value that JSON in PostgreSQL cannot hold; the text names the place."""


def to_builtins(value: Any) -> Any:
    """The value in terms of JSON, with the keys of every mapping as text."""
    return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_model_to_builtins)


def encode(builtins: Any) -> bytes:
    """Canonical JSON: compact, UTF-8, keys in order."""
    try:
        raw = _encode(builtins)
    except UnicodeEncodeError:
        _refuse_unstorable(builtins)
        raise
    if b"null" in raw or b"\\u0000" in raw:
        _refuse_unstorable(builtins)
    return raw


def _model_to_builtins(value: Any) -> Any:
    # Reached for values that no annotation describes; pydantic is not imported, its models are known by this mark.
    if hasattr(type(value), "__pydantic_serializer__"):
        return value.model_dump(mode="json", round_trip=True)
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be written as JSON")


def _refuse_unstorable(builtins: Any) -> None:
    for path, problem in _problems(builtins, ""):
        raise Unstorable(f"{path.removeprefix('.') or 'the value'}: {problem}")


def _problems(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield from ((path, problem) for problem in _text_problems(value))
        case float() if not math.isfinite(value):
            yield path, f"{value} has no place in JSON; pass None, or a text"
        case dict():
            for key, item in value.items():
                yield from ((path, f"in a key, {problem}") for problem in _text_problems(key))
                yield from _problems(item, f"{path}.{key}")
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _problems(item, f"{path}[{index}]")


def _text_problems(text: str) -> Iterator[str]:
    if "\0" in text:
        yield "a NUL character cannot be stored by PostgreSQL; remove it, or pass bytes"
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield "a lone surrogate is not valid Unicode text; decode the text properly, or pass bytes"
