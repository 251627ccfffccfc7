"""How an app says who delivers what."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from interlock.errors import InvalidOption
from interlock.outbox.emitter import EmitterOptions, Emitters
from interlock.trains.names import checked_name
from interlock.trains.options import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from interlock.outbox.emitter import OnDead
    from interlock.trains.options import Backoff

F = TypeVar("F", bound="Callable[..., Any]")


class EmitterKeywords(TypedDict, total=False):
    """The keywords of `emitter` and `batch_emitter`; what is left out is the settings'."""

    timeout: float | timedelta | None
    max_attempts: int | None
    max_crashes: int | None
    concurrency: int | None
    idempotency_window: timedelta | None
    backoff: Backoff | None
    on_dead: OnDead
    payload: Any


class Declaring:
    """The part of `app.outbox` that does no I/O."""

    def __init__(self) -> None:
        self.emitters = Emitters()

    def emitter(self, topic: str, **options: Unpack[EmitterKeywords]) -> Callable[[F], F]:
        """Let the function deliver the messages of a topic, or of a pattern such as `order.*`.

        It is called with the message, and with the context if it takes two arguments. Returning is delivery; see
        `Delivered`, `Retry`, `Snooze` and `Dead` for what else it may say. `payload` is a type to read payloads as.
        """
        refuse_unknown(options, EmitterKeywords)
        return self._declaring(topic, _options(None, **options))

    def batch_emitter(self, topic: str, size: int = 100, **options: Unpack[EmitterKeywords]) -> Callable[[F], F]:
        """Like `emitter`, but the function gets a list of up to `size` messages (and one of contexts).

        It answers a list with one outcome per message, or one outcome for all. Of a key only what was delivered
        without a gap counts: the rest is sent again, in order.
        """
        refuse_unknown(options, EmitterKeywords)
        return self._declaring(topic, _options(size, **options))

    def add_emitter(self, topic: str, function: Callable[..., Any], **options: Any) -> None:
        """The same as the decorator, for emitters that are objects, such as `Webhook(...)`."""
        self.emitter(topic, **options)(function)

    def _declaring(self, topic: str, options: EmitterOptions) -> Callable[[F], F]:
        checked_name("topic", topic)

        def declare(function: F) -> F:
            self.emitters.declare(topic, function, options)
            return function

        return declare


def _options(batch: int | None, /, *, timeout: float | timedelta | None = None, **options: Any) -> EmitterOptions:
    return EmitterOptions(timeout=_duration(timeout), batch=batch, **options)


def _duration(found: float | timedelta | None) -> timedelta | None:
    if found is None or isinstance(found, timedelta):
        return found
    try:
        return timedelta(seconds=found)
    except (TypeError, OverflowError, ValueError):
        raise InvalidOption(option="timeout", found=found, expected="seconds, or a timedelta") from None
