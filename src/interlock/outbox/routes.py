"""Which emitter delivers which topic, and in which chains."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interlock.outbox.emitter import expression_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from interlock.model.message import Road
    from interlock.outbox.emitter import Emitter
    from interlock.outbox.held import Held
    from interlock.outbox.settings import OutboxSettings

REMEMBERED = 10_000


class Routes:
    """The emitters of a drain, in the order in which their patterns count."""

    def __init__(self, emitters: Sequence[Emitter], settings: OutboxSettings) -> None:
        self.patterns = [emitter.expression for emitter in emitters]
        self.topics = [expression_of(each) for each in settings.outbox_topics] or None
        self._emitters = emitters
        self._expressions = [(re.compile(emitter.expression, re.DOTALL), emitter) for emitter in emitters]
        self._by_topic: dict[str, Emitter] = {}

    def roads(self, rooms: Sequence[bool]) -> list[Road]:
        return [emitter.road(has_room=room) for emitter, room in zip(self._emitters, rooms, strict=True)]

    def chains(self, held: Iterable[Held], *, ordered: bool) -> list[tuple[Emitter, list[list[Held]]]]:
        """What each emitter is to deliver: the messages of a key one after the other, the others side by side."""
        found: dict[int, tuple[Emitter, dict[object, list[Held]]]] = {}
        for each in held:
            emitter = self._emitter_of(each.claimed.topic)
            _, chains = found.setdefault(id(emitter), (emitter, {}))
            key = each.claimed.key if ordered else None
            chains.setdefault(each.id if key is None else key, []).append(each)
        return [(emitter, list(chains.values())) for emitter, chains in found.values()]

    def _emitter_of(self, topic: str) -> Emitter:
        emitter = self._by_topic.get(topic)
        if emitter is None:
            emitter = next(emitter for expression, emitter in self._expressions if expression.match(topic))
            if len(self._by_topic) < REMEMBERED:
                self._by_topic[topic] = emitter
        return emitter
