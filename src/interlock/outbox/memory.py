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
from zlib import crc32

from interlock.model.lifecycle import OutboxState
from interlock.model.message import BUCKETS, CRASH_LOOP, Answer, Claimed, Claims, Published, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from interlock.model.message import ClaimRequest, NewMessage, Road, Settlement

PENDING = OutboxState.PENDING
LEAST_CRASHES = 2
_ENDED = {Settling.DELIVERED: OutboxState.DELIVERED, Settling.DEAD: OutboxState.DEAD}


@dataclass(eq=False)
class Row:
    """One message, in the words of the table."""

    id: int
    message: NewMessage
    message_id: str
    published_at: datetime
    available_at: datetime
    expires_at: datetime | None
    state: OutboxState = PENDING
    token: UUID | None = None
    claims: int = 0
    attempts: int = 0
    crashes: int = 0
    first_emitted_at: datetime | None = None
    record_id: str | None = None
    failure: str | None = None
    error_message: str | None = None

    @property
    def bucket(self) -> int | None:
        key = self.message.key
        return None if key is None else crc32(key.encode()) % BUCKETS

    @property
    def losses(self) -> int:
        return self.crashes + (self.token is not None)


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
            return Claims([self._take(row, road, request, now, probe=probe) for row, road, probe in found], {})
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
            if (breaker := self.breakers.get(topic)) is not None:
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
            road = _road(row, request)
            if road is None or row.available_at > now:
                continue
            if (row.losses + 1 == _limit(road)) is request.isolated:
                by_topic.setdefault(row.message.topic, []).append((row, road, False))
        for topic in list(by_topic):
            by_topic[topic] = self._through_breaker(topic, by_topic[topic], request, now)
        for turn in range(max(map(len, by_topic.values()), default=0)):
            yield from (found[turn] for found in by_topic.values() if turn < len(found))

    def _through_breaker(
        self, topic: str, found: list[tuple[Row, Road, bool]], request: ClaimRequest, now: datetime
    ) -> list[tuple[Row, Road, bool]]:
        if topic in self.parked:
            return []
        breaker = self.breakers.get(topic)
        if breaker is None:
            return found
        if breaker.probe_at > now:
            return []
        breaker.probing, breaker.probe_at = True, now + request.lease
        return [(row, road, True) for row, road, _ in found[:1]]

    def _claim_lanes(self, request: ClaimRequest, now: datetime) -> Claims:
        claimed: list[Claimed] = []
        blocked: dict[str, timedelta] = {}
        ended: set[str] = set(request.blocked_keys)
        for row in sorted(self._pending(), key=lambda row: row.id):
            key, road = row.message.key, _road(row, request)
            if road is None or (key is not None and (key in ended or row.bucket not in (request.buckets or ()))):
                continue
            key = str(row.id) if key is None else key
            if row.available_at > now or self._is_shut(row.message.topic) or (road.holds and self._holds(row)):
                ended.add(key)
                if row.message.key is not None:
                    blocked[key] = max(row.available_at - now, timedelta(0))
            elif (row.losses + 1 == _limit(road)) is not request.isolated:
                ended.add(key)
            elif len(claimed) < request.limit:
                claimed.append(self._take(row, road, request, now, probe=False))
                if claimed[-1].state is not PENDING:
                    ended.add(key)
        return Claims(claimed, blocked)

    def _is_shut(self, topic: str) -> bool:
        return topic in self.parked or topic in self.breakers

    def _holds(self, row: Row) -> bool:
        given_up = (OutboxState.DEAD, OutboxState.NEEDS_REVIEW)
        return any(
            each.message.key == row.message.key and each.state in given_up and each.id < row.id
            for each in self.rows.values()
        )

    def _take(self, row: Row, road: Road, request: ClaimRequest, now: datetime, *, probe: bool) -> Claimed:
        crashed = row.token is not None
        row.state, row.failure = _verdict(row, road, now)
        row.crashes += crashed
        row.token = request.token if row.state is PENDING else None
        if row.state is PENDING:
            row.claims += 1
            row.available_at = _now() + request.lease
            row.first_emitted_at = row.first_emitted_at or now
        message = row.message
        return Claimed(
            id=row.id,
            message_id=row.message_id,
            topic=message.topic,
            payload=message.payload,
            headers=message.headers,
            key=message.key,
            partition=message.partition,
            state=row.state,
            claims=row.claims,
            attempts=row.attempts,
            crashes=row.crashes,
            published_at=row.published_at,
            expires_at=row.expires_at,
            trace=message.trace,
            out_of_order=False,
            failure=row.failure,
            probe=probe,
            crashed=crashed,
            bucket=row.bucket,
        )

    def _settle(self, settlement: Settlement) -> Answer:
        row = self.rows.get(settlement.id)
        if row is None:
            return Answer.MISSING
        if row.state is not PENDING:
            return Answer.TERMINAL
        if row.token != settlement.token:
            return Answer.STALE
        row.token = None
        row.attempts += settlement.outcome in (Settling.RETRY, Settling.DEAD)
        row.record_id = settlement.record_id or row.record_id
        if settlement.outcome is not Settling.SNOOZE:
            row.failure, row.error_message = settlement.failure, settlement.error_message
        if settlement.outcome in _ENDED:
            row.state = _ENDED[settlement.outcome]
        else:
            row.crashes, row.available_at = 0, _now() + (settlement.delay or timedelta(0))
        return Answer.APPLIED


def _verdict(row: Row, road: Road, now: datetime) -> tuple[OutboxState, str | None]:
    if row.expires_at is not None and row.expires_at <= now:
        return OutboxState.EXPIRED, "expired"
    if row.token is not None and row.losses >= _limit(road):
        return OutboxState.DEAD, CRASH_LOOP
    window, first = road.idempotency_window, row.first_emitted_at
    if row.claims and window is not None and first is not None and first + window <= now:
        return OutboxState.NEEDS_REVIEW, "window_passed"
    return PENDING, row.failure


def _limit(road: Road) -> int:
    return max(road.max_crashes, LEAST_CRASHES)


def _road(row: Row, request: ClaimRequest) -> Road | None:
    """The road of a message for this request, or None when it is not served."""
    topic, partition = row.message.topic, row.message.partition
    if request.topics is not None and not any(re.search(each, topic) for each in request.topics):
        return None
    if request.partitions is not None and partition not in request.partitions:
        return None
    road = next((each for each in request.roads if re.search(each.pattern, topic)), None)
    return road if road is not None and road.has_room else None


def _now() -> datetime:
    return datetime.now(UTC)
