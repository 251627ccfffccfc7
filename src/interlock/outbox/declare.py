"""How an app says who delivers what."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.errors import InvalidOption
from interlock.outbox.emitter import EmitterOptions, Emitters
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.outbox.emitter import OnDead
    from interlock.trains.options import Backoff

F = TypeVar("F", bound="Callable[..., Any]")


class Declaring:
    """The part of `app.outbox` that does no I/O."""

    def __init__(self) -> None:
        self.emitters = Emitters()

    def emitter(
        self,
        topic: str,
        *,
        timeout: float | timedelta | None = None,
        max_attempts: int | None = None,
        max_crashes: int | None = None,
        concurrency: int | None = None,
        idempotency_window: timedelta | None = None,
        backoff: Backoff | None = None,
        on_dead: OnDead = "hold",
        payload: Any = None,
    ) -> Callable[[F], F]:
        """Let the function deliver the messages of a topic, or of a pattern such as `order.*`.

        It is called with the message, and with the context if it takes two arguments. Returning is delivery; see
        `Delivered`, `Retry`, `Snooze` and `Dead` for what else it may say. `payload` is a type to read payloads as.
        """
        checked_name("topic", topic)
        options = EmitterOptions(
            timeout=_duration(timeout),
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            concurrency=concurrency,
            idempotency_window=idempotency_window,
            backoff=backoff,
            on_dead=on_dead,
            payload=payload,
        )
        return lambda function: self._declared(topic, function, options)

    def batch_emitter(
        self,
        topic: str,
        size: int = 100,
        *,
        timeout: float | timedelta | None = None,
        max_attempts: int | None = None,
        max_crashes: int | None = None,
        concurrency: int | None = None,
        idempotency_window: timedelta | None = None,
        backoff: Backoff | None = None,
        on_dead: OnDead = "hold",
        payload: Any = None,
    ) -> Callable[[F], F]:
        """Like `emitter`, but the function gets a list of up to `size` messages (and one of contexts).

        It answers a list with one outcome per message, or one outcome for all. Of a key only what was delivered
        without a gap counts: the rest is sent again, in order.
        """
        checked_name("topic", topic)
        options = EmitterOptions(
            timeout=_duration(timeout),
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            concurrency=concurrency,
            idempotency_window=idempotency_window,
            backoff=backoff,
            on_dead=on_dead,
            payload=payload,
            batch=size,
        )
        return lambda function: self._declared(topic, function, options)

    def add_emitter(self, topic: str, function: Callable[..., Any], **options: Any) -> None:
        """The same as the decorator, for emitters that are objects, such as `Webhook(...)`."""
        self.emitter(topic, **options)(function)

    def _declared(self, topic: str, function: F, options: EmitterOptions) -> F:
        self.emitters.declare(topic, function, options)
        return function


def _duration(found: float | timedelta | None) -> timedelta | None:
    if found is None or isinstance(found, timedelta):
        return found
    try:
        return timedelta(seconds=found)
    except (TypeError, OverflowError, ValueError):
        raise InvalidOption(option="timeout", found=found, expected="seconds, or a timedelta") from None
