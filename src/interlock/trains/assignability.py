"""Whether a value of one annotated type may be passed where another is expected.

This runs when a chain is built and is meant to find mistakes, not to be a type checker: where the answer would need
one (protocols, type variables, the arguments of exotic generics) the answer is yes, and mypy has the last word.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, is_typeddict

_NUMBERS = {float: (int,), complex: (int, float)}
_UNIONS = (Union, types.UnionType)


def assignable(source: Any, target: Any) -> bool:
    source, target = _bare(source), _bare(target)
    if Any in (source, target) or target is object or source == target:
        return True
    if isinstance(source, TypeVar) or isinstance(target, TypeVar):
        return True
    if (members := _members(source)) is not None:
        return all(assignable(member, target) for member in members)
    if get_origin(target) in _UNIONS:
        return any(assignable(source, member) for member in get_args(target))
    if Literal in (get_origin(source), get_origin(target)):
        return _literal_assignable(source, target)
    return _class_assignable(source, target)


def _members(source: Any) -> tuple[Any, ...] | None:
    """What a source may be, one by one, when it may be several things."""
    if get_origin(source) in _UNIONS:
        return get_args(source)
    if get_origin(source) is Literal and len(get_args(source)) > 1:
        return tuple(Literal[value] for value in get_args(source))
    return None


def _bare(annotation: Any) -> Any:
    if annotation is None:
        return type(None)
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if type(annotation).__name__ == "TypeAliasType":
        return _bare(annotation.__value__)
    return annotation


def _literal_assignable(source: Any, target: Any) -> bool:
    if get_origin(source) is not Literal:
        return False
    (value,) = get_args(source)
    return value in get_args(target) if get_origin(target) is Literal else assignable(type(value), target)


def _class_assignable(source: Any, target: Any) -> bool:
    if hasattr(source, "__supertype__"):
        return assignable(source.__supertype__, target)
    kind, wanted = get_origin(source) or source, get_origin(target) or target
    if not isinstance(wanted, type) or is_typeddict(wanted):
        return bool(kind == wanted)
    return _is_subclass(kind, wanted) and _arguments_assignable(kind, get_args(source), get_args(target))


def _is_subclass(kind: Any, wanted: type) -> bool:
    try:
        return issubclass(kind, (wanted, *_NUMBERS.get(wanted, ())))
    except TypeError:  # a protocol that cannot be checked at run time
        return bool(getattr(wanted, "_is_protocol", False))


def _arguments_assignable(kind: Any, found: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if not found or not wanted or list in map(type, found + wanted):
        return True
    if kind is tuple:
        return _tuple_assignable(found, wanted)
    return all(assignable(one, other) for one, other in zip(found, wanted, strict=False))


def _tuple_assignable(found: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    members = [member for member in found if member is not Ellipsis]
    if Ellipsis in wanted or (len(wanted) == 1 and len(members) != 1):
        return all(assignable(member, wanted[0]) for member in members)
    return Ellipsis in found or (
        len(members) == len(wanted) and all(assignable(one, other) for one, other in zip(members, wanted, strict=True))
    )
