"""A breaker per topic: when deliveries fail one after the other, nobody claims the topic until a probe succeeds.

Its state lies in the database, so all workers stop at once and one of them probes; it is written when it changes, not
per message. Failures in a row are counted by each worker for itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.model.message import MAX_ATTEMPTS, Settling
from interlock.observe.events.outbox import TopicBreakerChanged

if TYPE_CHECKING:
    from interlock.model.message import Settlement
    from interlock.observe.bus import Emit
    from interlock.outbox.held import Held
    from interlock.outbox.store import MessageStore

FAILURES = 10
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)


class Breakers:
    def __init__(
        self, store: MessageStore, *, emit: Emit, failures: int = FAILURES, pause: timedelta = FIRST_PAUSE
    ) -> None:
        self._store, self._emit = store, emit
        self._most, self._pause = failures, pause
        self._failures: dict[str, int] = {}
        self._changes: dict[str, bool] = {}

    def refuses(self, topic: str) -> bool:
        """Whether what this worker holds of the topic is to be given back instead of tried."""
        return bool(self._failures) and self._failures.get(topic, 0) >= self._most

    @property
    def changed(self) -> bool:
        """Whether there is something that others do not know yet."""
        return bool(self._changes)

    def count(self, held: Held, settlement: Settlement) -> None:
        topic = held.claimed.topic
        if settlement.outcome is Settling.RETRY or settlement.failure == MAX_ATTEMPTS:
            self._failed(topic, probe=held.claimed.probe)
            return
        if held.claimed.probe and settlement.outcome is not Settling.SNOOZE:
            self._changes[topic] = False
        self._failures.pop(topic, None)

    async def write(self) -> None:
        """Tell everybody what changed since the last time."""
        for topic, opens in tuple(self._changes.items()):
            await (self._open(topic) if opens else self._close(topic))
            if self._changes.get(topic) is opens:
                del self._changes[topic]

    def forget(self, topic: str) -> None:
        """A topic that was left alone was claimed like any other, so somebody found that it may be tried again."""
        if self.refuses(topic) and topic not in self._changes:
            del self._failures[topic]

    def _failed(self, topic: str, *, probe: bool) -> None:
        count = self._failures[topic] = self._failures.get(topic, 0) + 1
        if probe or count == self._most:
            self._failures[topic] = max(count, self._most)
            self._changes[topic] = True

    async def _open(self, topic: str) -> None:
        pause = await self._store.open_breaker(topic, self._pause, LONGEST_PAUSE)
        if pause is not None:
            self._emit(TopicBreakerChanged(topic=topic, state="open", pause=pause))

    async def _close(self, topic: str) -> None:
        if await self._store.close_breaker(topic):
            self._emit(TopicBreakerChanged(topic=topic, state="closed"))
