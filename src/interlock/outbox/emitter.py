"""Emitters by topic pattern: who delivers what, and on which terms."""

from __future__ import annotations

import inspect
import random
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption
from interlock.model.message import Road
from interlock.trains.names import checked_name
from interlock.trains.options import Backoff, checked_count, checked_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.outbox.settings import OutboxSettings

OnDead = Literal["hold", "continue"]

BACKOFF = Backoff(delay=timedelta(seconds=1), factor=2.0, max_delay=timedelta(minutes=5))
JITTER = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterOptions:
    """What an emitter may say; None leaves the choice to the settings."""

    timeout: timedelta | None = None
    max_attempts: int | None = None
    max_crashes: int | None = None
    concurrency: int | None = None
    idempotency_window: timedelta | None = None
    backoff: Backoff | None = None
    on_dead: OnDead = "hold"
    batch: int | None = None
    payload: Any = None

    def __post_init__(self) -> None:
        for option in ("timeout", "idempotency_window"):
            if getattr(self, option) is not None:
                checked_duration(option, getattr(self, option))
        for option in ("max_attempts", "max_crashes", "concurrency", "batch"):
            checked_count(option, getattr(self, option))
        if self.on_dead not in ("hold", "continue"):
            raise InvalidOption(option="on_dead", found=self.on_dead, expected="'hold' or 'continue'")
        if not isinstance(self.backoff, Backoff | None):
            raise InvalidOption(option="backoff", found=self.backoff, expected="a Backoff, such as Backoff(delay=…)")
        _loader(self.payload)


@dataclass(frozen=True, eq=False)
class Emitter:
    """A function that delivers the messages of some topics."""

    pattern: str
    function: Callable[..., Any]
    timeout: timedelta
    max_attempts: int
    max_crashes: int
    concurrency: int
    idempotency_window: timedelta | None
    backoff: Backoff
    on_dead: OnDead
    batch: int | None
    load: Callable[[str], Any]
    expression: str = field(init=False)
    is_async: bool = field(init=False)
    takes_context: bool = field(init=False)
    seconds: float = field(init=False)

    def __post_init__(self) -> None:
        fixed = object.__setattr__
        fixed(self, "expression", expression_of(self.pattern))
        fixed(self, "is_async", _is_async(self.function))
        fixed(self, "takes_context", _takes_context(self.function))
        fixed(self, "seconds", self.timeout.total_seconds())

    def road(self, *, has_room: bool = True) -> Road:
        return Road(self.expression, self.max_crashes, self.idempotency_window, self.on_dead == "hold", has_room)

    def delay_after(self, failures: int) -> timedelta:
        """Longer after each failure, up to a limit, and never the same for all."""
        return self.backoff.after(failures) * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  it spreads load


class Emitters:
    """The emitters of an app, the most specific pattern first."""

    def __init__(self) -> None:
        self._declared: dict[str, tuple[Callable[..., Any], EmitterOptions]] = {}
        self._frozen = False

    def declare(self, pattern: str, function: Callable[..., Any], options: EmitterOptions) -> None:
        if self._frozen:
            raise DeclarationAfterStart(what=f"the emitter of {pattern!r}")
        if checked_name("topic", pattern) in self._declared:
            raise DuplicateName(kind="emitter", name=pattern)
        _check_function(pattern, function)
        self._declared[pattern] = (function, options)

    def freeze(self) -> None:
        self._frozen = True

    def __len__(self) -> int:
        return len(self._declared)

    def patterns(self) -> list[str]:
        return sorted(self._declared)

    def resolved(self, settings: OutboxSettings) -> list[Emitter]:
        """Each with what the settings say where it says nothing."""
        return [_resolved(pattern, *self._declared[pattern], settings) for pattern in self._by_precision()]

    def hold_behind_dead(self, topic: str) -> bool:
        """Whether a message of this topic waits behind a dead one of its key; the default where nobody here says."""
        for pattern in self._by_precision():
            if re.match(expression_of(pattern), topic, re.DOTALL):
                return self._declared[pattern][1].on_dead == "hold"
        return True

    def _by_precision(self) -> list[str]:
        return sorted(self._declared, key=lambda each: ("*" in each, -len(each), each))


def expression_of(pattern: str) -> str:
    """A regular expression that Python and PostgreSQL read alike; `*` stands for any text."""
    return "^" + ".*".join(re.sub(r"([^\w])", r"\\\1", part, flags=re.ASCII) for part in pattern.split("*")) + "$"


def _resolved(pattern: str, function: Callable[..., Any], options: EmitterOptions, settings: OutboxSettings) -> Emitter:
    timeout = options.timeout or settings.outbox_emit_timeout
    if timeout >= settings.outbox_lease:
        expected = f"less than outbox_lease ({settings.outbox_lease.total_seconds():g} s)"
        raise InvalidOption(option=f"timeout of the emitter {pattern!r}", found=timeout, expected=expected)
    return Emitter(
        pattern=pattern,
        function=function,
        timeout=timeout,
        max_attempts=options.max_attempts or settings.outbox_max_attempts,
        max_crashes=options.max_crashes or settings.outbox_max_crashes,
        concurrency=options.concurrency or settings.outbox_concurrency,
        idempotency_window=options.idempotency_window or settings.outbox_idempotency_window,
        backoff=options.backoff or BACKOFF,
        on_dead=options.on_dead,
        batch=options.batch,
        load=_loader(options.payload),
    )


def _loader(payload: Any) -> Callable[[str], Any]:
    """How payloads are read as this type."""
    if payload is None:
        return msgspec.json.decode
    try:
        return msgspec.json.Decoder(payload).decode
    except (TypeError, NameError, AttributeError) as error:
        raise InvalidOption(
            option="payload", found=payload, expected=f"a type that JSON can be read as ({error})"
        ) from error


def _check_function(pattern: str, function: object) -> None:
    option, expected = (
        f"the emitter of {pattern!r}",
        "a function of one argument (the message) or two (and the context)",
    )
    if not callable(function):
        raise InvalidOption(option=option, found=function, expected=expected)
    if _is_generator(function):
        raise InvalidOption(option=option, found="a generator, whose body a call does not run", expected=expected)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C do not tell; then the first delivery does
        return
    if not (_accepts(signature, 1) or _accepts(signature, 2)):
        raise InvalidOption(option=option, found=str(signature), expected=expected)


def _is_generator(function: Callable[..., Any]) -> bool:
    kinds = inspect.isgeneratorfunction, inspect.isasyncgenfunction
    return any(is_one(each) for each in (function, getattr(function, "__call__", None)) for is_one in kinds)  # noqa: B004  what a call runs


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  whether calling it has to be awaited


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        return _accepts(inspect.signature(function), 2)
    except ValueError:
        return False
