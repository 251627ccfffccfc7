"""How the value of an option is read from text and checked against its type."""

from __future__ import annotations

import re
import types
from datetime import timedelta
from typing import Any, Literal, Union, get_args, get_origin

from interlock.errors import InvalidSetting
from interlock.model.bounds import LARGEST_COUNT, LONGEST

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_UNITS = {unit: timedelta(seconds=_SECONDS[unit]) for unit in ("d", "h", "m", "s", "ms")}
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_NONE = {"none", "null"}
_MAY_BE_ZERO = {"max_dispatch_attempts", "statement_cache_size", "dependent_priority_boost", "misfire_threshold",
                "settle_window", "worker_slots", "retry_delay"}  # fmt: skip
_SHORTEST = timedelta(milliseconds=1)
_AT_LEAST = {"retry_backoff": 1}
_AT_MOST: dict[str, Any] = {
    "dependent_priority_boost": 63,
    "pool_size": 10_000,
    # PostgreSQL counts both in milliseconds, in an integer.
    "tick_statement_timeout": timedelta(days=1),
    "tick_idle_timeout": timedelta(days=1),
}
SECRETS = frozenset({"dsn", "redis_url", "runner_secret"})
"""Options whose value may hold a password: never shown as they are."""


def parse(name: str, value: Any, kind: Any, origin: str) -> Any:
    """The value as its type, from text (environment) or as it is (arguments, TOML)."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if types.NoneType in options:
        if value is None or (isinstance(value, str) and value.lower() in _NONE and origin != "argument"):
            return None
        options = tuple(option for option in options if option is not types.NoneType)
    for option in options:
        found = _parse_one(value, option)
        if found is not None:
            return found
    raise InvalidSetting(setting=name, found=_harmless(name, value), expected=expectation(kind), origin=origin)


def check_range(name: str, value: Any, origin: str) -> None:
    """Numbers and durations are positive and fit into PostgreSQL's types."""
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        return
    problem = _out_of_range(name, value)
    if problem is not None:
        raise InvalidSetting(setting=name, found=spoken(value), expected=problem, origin=origin)


def _out_of_range(name: str, value: Any) -> str | None:
    zero = type(value)(0)
    if value < zero or (value == zero and name not in _MAY_BE_ZERO):
        return "zero or more" if name in _MAY_BE_ZERO else "more than zero"
    if name in _AT_LEAST and value < _AT_LEAST[name]:
        return f"at least {_AT_LEAST[name]}"
    if isinstance(value, timedelta) and zero < value < _SHORTEST:
        # PostgreSQL would round it to zero, which switches a timeout off.
        return "at least a millisecond"
    most = _AT_MOST.get(name, LONGEST if isinstance(value, timedelta) else LARGEST_COUNT)
    return f"at most {spoken(most)}" if value > most else None


def _harmless(name: str, value: Any) -> Any:
    return f"a {type(value).__name__} that is not shown" if name in SECRETS else value


def _parse_one(value: Any, kind: Any) -> Any:  # noqa: PLR0911  one line per type
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    if kind is timedelta:
        return _duration(value)
    if kind is bool:
        return value if isinstance(value, bool) else _BOOLEANS.get(str(value).lower())
    if kind is int:
        return _integer(value)
    if kind is float:
        return _float(value)
    if get_origin(kind) is tuple:
        return _names(value)
    return value if isinstance(value, str) and _storable(value) else None


def _storable(text: str) -> bool:
    """Neither blank, nor with a NUL or bytes outside UTF-8 (PostgreSQL refuses them), nor able to steer a terminal."""
    return bool(text.strip()) and text.isprintable()


def _duration(value: Any) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return timedelta(seconds=value) if abs(value) <= LONGEST.total_seconds() else None
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return _duration(float(found[1]) * _SECONDS[(found[2] or "s").lower()]) if found else None


def _integer(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()) else None


def _float(value: Any) -> float | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST_COUNT else None


def _names(value: Any) -> tuple[str, ...] | None:
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) and _storable(name) for name in found):
        return None
    return tuple(name.strip() for name in found)


def expectation(kind: Any) -> str:
    """What a value of this type looks like, for errors and for the reference."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return " or ".join(_name(option) for option in options)


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(repr(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return "names, separated by commas"
    names = {timedelta: "a duration (30, '30s', '5m', '2h')", int: "a whole number", float: "a number",
             bool: "true or false", str: "a text", types.NoneType: "none"}  # fmt: skip
    return names[kind]


def spoken(value: Any) -> Any:
    """A value as errors and tables show it: a duration in its largest whole unit, in a form that can be read back."""
    if not isinstance(value, timedelta):
        return value
    for unit, length in _UNITS.items():
        if value and value % length == timedelta(0):
            return f"{value // length}{unit}"
    return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
