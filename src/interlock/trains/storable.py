"""JSON as PostgreSQL can keep it.

`jsonb` has no NUL character, UTF-8 has no lone surrogates and JSON has no NaN or Infinity (which would turn into null
without a word). All three are refused here, with the place where they were found. The search walks the value, so it
runs only when the encoded bytes give reason to suspect one.

How deep a value may be nested differs between versions of Python, and what one of them wrote the others have to read.
So there is one limit, well below that of all.
"""

from __future__ import annotations

import math
from datetime import date, time
from decimal import Decimal
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_KINDS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes),
    ((date, time), methodcaller("isoformat")),
    (Decimal, Decimal.__str__),
)
_encode = msgspec.json.Encoder(order="deterministic").encode

_CONTAINERS = (dict, list, tuple)

DEEPEST = 500
_TOO_DEEP = f"lists and tables nested more than {DEEPEST} levels deep cannot be stored; pass a flatter value"


class Unstorable(ValueError):
    """A value that JSON in PostgreSQL cannot hold; the text names the place."""


def to_builtins(value: Any) -> Any:
    """The value in terms of JSON, with the keys of every mapping as text."""
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_to_builtin)
    except RecursionError as error:
        raise Unstorable(_TOO_DEEP) from error


def encode(builtins: Any) -> bytes:
    """Canonical JSON: compact, UTF-8, keys in order."""
    try:
        raw = _encode(builtins)
    except UnicodeEncodeError:
        _refuse_unstorable(builtins)
        raise
    except RecursionError as error:
        raise Unstorable(_TOO_DEEP) from error
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        _refuse_too_deep(builtins)
    if b"null" in raw or b"\\u0000" in raw:
        _refuse_unstorable(builtins)
    return raw


def _to_builtin(value: Any) -> Any:
    """What msgspec leaves to others: it goes by exact types, but a subclass is a text, a number or a time as well."""
    # Reached for values that no annotation describes; pydantic is not imported, its models are known by this mark.
    if hasattr(type(value), "__pydantic_serializer__"):
        return value.model_dump(mode="json", round_trip=True)
    for kind, plain in _KINDS:
        if isinstance(value, kind):
            return plain(value)
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be written as JSON")


def _refuse_too_deep(builtins: Any) -> None:
    """Level by level, because a recursion would meet the limit of this process first."""
    level = _containers([builtins])
    for _ in range(DEEPEST):
        if not level:
            return
        level = [
            inner for outer in level for inner in _containers(outer.values() if isinstance(outer, dict) else outer)
        ]
    if level:
        raise Unstorable(_TOO_DEEP)


def _containers(members: Iterable[Any]) -> list[Any]:
    return [member for member in members if isinstance(member, _CONTAINERS)]


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
        yield "a NUL character cannot be stored by PostgreSQL; remove it, or declare it as bytes"
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield "a lone surrogate is not valid Unicode text; decode the text properly, or declare it as bytes"
