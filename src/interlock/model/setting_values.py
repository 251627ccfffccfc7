"""How the value of an option is read from text and checked against its type."""

from __future__ import annotations

import re
import types
from datetime import timedelta
from typing import Any, Literal, Union, get_args, get_origin

from interlock.errors import InvalidSetting

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_NONE = {"", "none", "null"}
_MAY_BE_ZERO = {"max_dispatch_attempts", "statement_cache_size", "dependent_priority_boost", "misfire_threshold",
                "settle_window", "worker_slots", "retry_delay"}  # fmt: skip
_LONGEST = timedelta(days=36500)


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
    raise InvalidSetting(setting=name, found=value, expected=_expected(kind), origin=origin)


def check_range(name: str, value: Any, origin: str) -> None:
    """Numbers and durations are positive, and durations fit into PostgreSQL's clock."""
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        return
    size = value.total_seconds() if isinstance(value, timedelta) else value
    if size < 0 or (size == 0 and name not in _MAY_BE_ZERO):
        allowed = "zero or more" if name in _MAY_BE_ZERO else "more than zero"
        raise InvalidSetting(setting=name, found=_shown(value), expected=allowed, origin=origin)
    if isinstance(value, timedelta) and value > _LONGEST:
        raise InvalidSetting(setting=name, found=_shown(value), expected="at most a hundred years", origin=origin)


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
    return value if isinstance(value, str) and value and "\0" not in value else None


def _duration(value: Any) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return timedelta(seconds=value) if abs(value) <= _LONGEST.total_seconds() else None
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or len(found[1]) > len("3155760000.123"):
        return None
    return timedelta(seconds=float(found[1]) * _SECONDS[(found[2] or "s").lower()])


def _integer(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value.strip()) else None


def _float(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:  # noqa: PLR0124  not a NaN
        return float(value)
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()) else None


def _names(value: Any) -> tuple[str, ...] | None:
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) and name.strip() for name in found):
        return None
    return tuple(name.strip() for name in found)


def _expected(kind: Any) -> str:
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


def _shown(value: Any) -> Any:
    return f"{value.total_seconds():g}s" if isinstance(value, timedelta) else value
