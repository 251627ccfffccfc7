"""Messages in memory: for tests of emitters without a database.

It keeps to the same rules as PostgreSQL, and the same suite holds it to them. It is not durable, lives in one process,
and says nothing about workers in several.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.model.lifecycle import OutboxState
from interlock.model.message import Answer, Claims, Published
from interlock.outbox.memory_row import PENDING, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from interlock.model.message import Claimed, ClaimRequest, NewMessage, Road, Settlement


@dataclass(eq=False)
class Breaker:
    probe_at: datetime
    failures: int = 1
    probing: bool = False


@dataclass(eq=False)
class MemoryMessages:
    """See MessageStore; `rows` may be looked at."""

    rows: dict[int, Row] = field(default_factory=dict)
    parked: set[str] = field(default_factory=set)
    breakers: dict[str, Breaker] = field(default_factory=dict)
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def publish(self, messages: Sequence[NewMessage]) -> list[Published]:
        """Those whose id exists already are missing from the answer."""
        known = {row.message_id for row in self.rows.values()}
        published = []
        for message in messages:
            message_id = message.message_id or str(uuid4())
            if message_id not in known:
                known.add(message_id)
                published.append(self._insert(message, message_id))
        return published

    async def claim(self, request: ClaimRequest) -> Claims:
        now = _now()
        if request.buckets is None:
            found = list(self._due(request, now))[: request.limit]
            return Claims([row.claim(road, request, now, probe=probe) for row, road, probe in found], {})
        return self._claim_lanes(request, now)

    async def settle(self, settlements: Sequence[Settlement]) -> list[Answer]:
        return [self._settle(each) for each in settlements]

    async def release(self, held: Sequence[tuple[int, UUID]], delay: timedelta) -> set[int]:
        rows = self._held(held)
        for row in rows:
            row.first_emitted_at = None if row.claims == 1 else row.first_emitted_at
            row.token, row.claims, row.available_at = None, row.claims - 1, _now() + delay
        return {row.id for row in rows}

    async def renew(self, held: Sequence[tuple[int, UUID]], lease: timedelta) -> set[int]:
        rows = self._held(held)
        for row in rows:
            row.available_at = _now() + lease
        return {row.id for row in rows}

    async def next_due(self, patterns: Sequence[str]) -> timedelta | None:
        now = _now()
        waits: list[timedelta] = []
        for row in self._pending():
            topic = row.message.topic
            if topic in self.parked or not any(re.search(each, topic) for each in patterns):
                continue
            if (breaker := self.breakers.get(topic)) is not None and breaker.probe_at > now:
                waits.append(breaker.probe_at - now)
            elif row.available_at > now:
                waits.append(row.available_at - now)
        return min(waits) if waits else None

    async def open_breaker(self, topic: str, pause: timedelta, most: timedelta) -> timedelta | None:
        breaker = self.breakers.get(topic)
        if breaker is not None and not breaker.probing:
            return None
        openings = 1 if breaker is None else breaker.failures + 1
        waits = min(pause * float(2 ** min(openings - 1, 20)), most)
        self.breakers[topic] = Breaker(_now() + waits, openings)
        return waits

    async def close_breaker(self, topic: str) -> bool:
        return self.breakers.pop(topic, None) is not None

    async def tags(self) -> list[Sequence[str]]:
        return []

    async def close(self) -> None:
        """Nothing to hang up."""

    def _settle(self, settlement: Settlement) -> Answer:
        row = self.rows.get(settlement.id)
        return Answer.MISSING if row is None else row.settle(settlement, _now())

    def _insert(self, message: NewMessage, message_id: str) -> Published:
        number, now = next(self._ids), _now()
        expires_at = None if message.expires is None else now + message.expires
        due = now + (message.delay or timedelta(0))
        self.rows[number] = Row(number, message, message_id, now, due, expires_at)
        return Published(number, message_id)

    def _pending(self) -> Iterator[Row]:
        return (row for row in self.rows.values() if row.state is PENDING)

    def _held(self, held: Sequence[tuple[int, UUID]]) -> list[Row]:
        rows = ((self.rows.get(number), token) for number, token in held)
        return [row for row, token in rows if row is not None and row.state is PENDING and row.token == token]

    def _due(self, request: ClaimRequest, now: datetime) -> Iterator[tuple[Row, Road, bool]]:
        """Of all topics in turn, so that none hides another."""
        by_topic: dict[str, list[tuple[Row, Road, bool]]] = {}
        for row in sorted(self._pending(), key=lambda row: (row.available_at, row.id)):
            road = row.road(request)
            if road is None or row.available_at > now:
                continue
            if row.is_on_last_chance(road) is request.isolated:
                by_topic.setdefault(row.message.topic, []).append((row, road, False))
        for topic in list(by_topic):
            by_topic[topic] = self._through_breaker(topic, by_topic[topic], request, now)
        for turn in range(max(map(len, by_topic.values()), default=0)):
            yield from (found[turn] for found in by_topic.values() if turn < len(found))

    def _through_breaker(
        self, topic: str, found: list[tuple[Row, Road, bool]], request: ClaimRequest, now: datetime
    ) -> list[tuple[Row, Road, bool]]:
        if self._is_shut(topic, now):
            return []
        if topic not in self.breakers:
            return found
        probes = [(row, road, True) for row, road, _ in found if row.is_to_deliver(road, now)][:1]
        if probes:
            self._takes_probe(topic, request, now)
        return probes + [each for each in found if not each[0].is_to_deliver(each[1], now)]

    def _claim_lanes(self, request: ClaimRequest, now: datetime) -> Claims:
        claimed: list[Claimed] = []
        blocked: dict[str, timedelta] = {}
        ended: set[str | int] = set(request.blocked_keys)
        for row in sorted(self._pending(), key=lambda row: row.id):
            key, road = row.message.key, row.road(request)
            if road is None or (key is not None and (key in ended or row.bucket not in (request.buckets or ()))):
                continue
            chain = row.id if key is None else key
            if row.available_at > now or self._is_shut(row.message.topic, now) or (road.holds and self._holds(row)):
                ended.add(chain)
                if key is not None:
                    blocked[key] = max(row.available_at - now, timedelta(0))
            elif row.is_on_last_chance(road) is not request.isolated:
                ended.add(chain)
            elif len(claimed) < request.limit:
                probe = row.is_to_deliver(road, now) and self._takes_probe(row.message.topic, request, now)
                claimed.append(row.claim(road, request, now, probe=probe))
                if probe or claimed[-1].state is not PENDING:
                    ended.add(chain)
        return Claims(claimed, blocked)

    def _is_shut(self, topic: str, now: datetime) -> bool:
        breaker = self.breakers.get(topic)
        return topic in self.parked or (breaker is not None and breaker.probe_at > now)

    def _takes_probe(self, topic: str, request: ClaimRequest, now: datetime) -> bool:
        """A closed road is tried by one claim at a time."""
        if (breaker := self.breakers.get(topic)) is None:
            return False
        breaker.probing, breaker.probe_at = True, now + request.lease
        return True

    def _holds(self, row: Row) -> bool:
        given_up = (OutboxState.DEAD, OutboxState.NEEDS_REVIEW)
        return any(
            each.message.key == row.message.key and each.state in given_up and each.id < row.id
            for each in self.rows.values()
        )


def _now() -> datetime:
    return datetime.now(UTC)
