"""What a function says about itself: its parameters, their types, and the type of what it returns."""

from __future__ import annotations

import collections.abc
import inspect
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Any, Never, NoReturn, Union, get_args, get_origin, get_type_hints

from interlock.errors import InvalidTrain
from interlock.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

_EMPTY = inspect.Parameter.empty
_AWAITABLES = (collections.abc.Coroutine, collections.abc.Awaitable)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    annotation: Any
    default: Any = _EMPTY

    @property
    def required(self) -> bool:
        return self.default is _EMPTY


@dataclass(frozen=True, slots=True)
class Shape:
    """The types of a function, resolved once, when it is declared."""

    call: inspect.Signature
    parameters: tuple[Parameter, ...]
    output: Any

    @property
    def required(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.required)


def read_shape(function: Callable[..., Any], train: str) -> Shape:
    """The shape of a function, or an error that says what keeps it from being a train."""
    if not inspect.isfunction(function):
        raise InvalidTrain(train=train, problem=f"{function!r} is no function", hint="pass a def or an async def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTrain(train=train, problem="it is a generator", hint="return one value, a list for instance")
    call, hints = inspect.signature(function), _hints(function, train)
    parameters = tuple(_parameter(parameter, hints, train) for parameter in call.parameters.values())
    return Shape(call=call, parameters=parameters, output=_output(hints.get("return", Any)))


def _hints(function: Callable[..., Any], train: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError) as error:
        problem = f"an annotation cannot be resolved: {error}"
        hint = "import the type at run time (not under TYPE_CHECKING) and define it at module level"
        raise InvalidTrain(train=train, problem=problem, hint=hint) from error


def _parameter(parameter: inspect.Parameter, hints: dict[str, Any], train: str) -> Parameter:
    if parameter.kind not in _BY_NAME:
        problem = f"parameter {str(parameter.replace(annotation=_EMPTY))!r} is {parameter.kind.description}"
        raise InvalidTrain(train=train, problem=problem, hint="inputs are stored by name: give each parameter its own")
    if parameter.name not in hints:
        problem = f"parameter {parameter.name!r} has no annotation"
        raise InvalidTrain(train=train, problem=problem, hint=f"write its type, for instance {parameter.name}: str")
    return Parameter(parameter.name, hints[parameter.name], parameter.default)


def _output(annotation: Any) -> Any:
    if annotation in (Never, NoReturn):
        return Any
    if get_origin(annotation) in _AWAITABLES:
        annotation = get_args(annotation)[-1]
    return _without_outcomes(annotation)


def _without_outcomes(annotation: Any) -> Any:
    """What is stored: `-> str | Retry` stores a text, because a retry has no output."""
    if get_origin(annotation) not in (Union, UnionType):
        return Any if _is_outcome(annotation) else annotation
    members = tuple(member for member in get_args(annotation) if not _is_outcome(member))
    return Union[members] if members else Any  # noqa: UP007  the members are known at run time only


def _is_outcome(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Outcome)
