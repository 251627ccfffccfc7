"""The one way from domain code to whoever watches: typed events, handed over in the emitting thread.

The watchers of a kind are looked up once and remembered until the subscriptions change, so an event that nobody asked
for costs one dictionary lookup. A watcher that raises is reported once and disturbs neither the emitter nor its peers.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from interlock.observe.events.base import Event

if TYPE_CHECKING:
    from collections.abc import Callable

Emit: TypeAlias = "Callable[[Event], None]"

_logger = logging.getLogger("interlock.observe")


@dataclass(eq=False)
class _Subscription:
    handler: Emit
    kinds: tuple[type[Event], ...]
    reported: bool = False

    def deliver(self, event: Event) -> None:
        try:
            self.handler(event)
        except Exception as error:  # noqa: BLE001  an emitter must not suffer from whoever watches
            if not self.reported:
                self._report(event, error)

    def _report(self, event: Event, error: Exception) -> None:
        # Marked first: a log handler may emit in its turn. Unmarked if the report failed, as it does at the stack's end
        self.reported = True
        told = (self.handler, type(event).__name__)
        try:
            _logger.error("subscriber %r raised on %s; not reported again", *told, exc_info=error)
        except BaseException:
            self.reported = False
            raise


class Bus:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._by_kind: dict[type[Event], tuple[_Subscription, ...]] = {}

    def subscribe(self, handler: Emit, kinds: tuple[type[Event], ...] = (Event,)) -> Callable[[], None]:
        """Hand every event of these kinds (and kinds derived from them) to the handler; call the answer to end that."""
        subscription = _Subscription(handler, kinds)
        self._change(lambda before: (*before, subscription))
        return lambda: self._change(lambda before: tuple(s for s in before if s is not subscription))

    def emit(self, event: Event) -> None:
        """Hand the event to its subscribers, in the order in which they subscribed."""
        subscriptions = self._by_kind.get(type(event))
        for subscription in self._look_up(type(event)) if subscriptions is None else subscriptions:
            subscription.deliver(event)

    def watched(self, kind: type[Event]) -> bool:
        """Whether anybody would get an event of this kind: where thousands come up a second, ask before making one."""
        subscriptions = self._by_kind.get(kind)
        return bool(self._look_up(kind) if subscriptions is None else subscriptions)

    def _change(self, change: Callable[[tuple[_Subscription, ...]], tuple[_Subscription, ...]]) -> None:
        with self._lock:
            self._subscriptions = change(self._subscriptions)
            self._by_kind = {}

    def _look_up(self, kind: type[Event]) -> tuple[_Subscription, ...]:
        # Under the lock: what is remembered must not be older than the subscriptions.
        with self._lock:
            found = tuple(s for s in self._subscriptions if issubclass(kind, s.kinds))
            self._by_kind[kind] = found
            return found


def discard(event: Event) -> None:
    """An `Emit` for code that nobody watches."""
