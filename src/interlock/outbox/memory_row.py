"""One message in memory: what a claim makes of it, and how it ends."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from zlib import crc32

from interlock.model.lifecycle import OutboxState
from interlock.model.message import BUCKETS, CRASH_LOOP, Answer, Claimed, Settling

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from interlock.model.message import ClaimRequest, NewMessage, Road, Settlement

PENDING = OutboxState.PENDING
LEAST_CRASHES = 2
_ENDED = {Settling.DELIVERED: OutboxState.DELIVERED, Settling.DEAD: OutboxState.DEAD}


@dataclass(eq=False)
class Row:
    """In the words of the table."""

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

    def is_on_last_chance(self, road: Road) -> bool:
        return self.losses + 1 == _limit(road)

    def road(self, request: ClaimRequest) -> Road | None:
        """The road of the message for this request, or None when it is not served."""
        topic, partition = self.message.topic, self.message.partition
        if request.topics is not None and not any(re.search(each, topic) for each in request.topics):
            return None
        if request.partitions is not None and partition not in request.partitions:
            return None
        road = next((each for each in request.roads if re.search(each.pattern, topic)), None)
        return road if road is not None and road.has_room else None

    def is_to_deliver(self, road: Road, now: datetime) -> bool:
        """Whether a claim would not end it."""
        return self._verdict(road, now)[0] is PENDING

    def claim(self, road: Road, request: ClaimRequest, now: datetime, *, probe: bool) -> Claimed:
        crashed, good_for = self.token is not None, self._good_for(road, now)
        self.state, self.failure = self._verdict(road, now)
        self.crashes += crashed
        self.token = request.token if self.state is PENDING else None
        if self.state is PENDING:
            self.claims += 1
            self.available_at = now + request.lease
            self.first_emitted_at = self.first_emitted_at or now
        return self._claimed(probe=probe, crashed=crashed, good_for=good_for)

    def settle(self, settlement: Settlement, now: datetime) -> Answer:
        if self._is_as_left_by(settlement):
            return Answer.APPLIED
        if self.state is not PENDING:
            return Answer.TERMINAL
        if self.token != settlement.token:
            return Answer.STALE
        self.token = None
        self.attempts += settlement.outcome in (Settling.RETRY, Settling.DEAD)
        self.record_id = settlement.record_id or self.record_id
        if settlement.outcome is not Settling.SNOOZE:
            self.failure, self.error_message = settlement.failure, settlement.error_message
        if settlement.outcome in _ENDED:
            self.state = _ENDED[settlement.outcome]
        else:
            self.crashes, self.available_at = 0, now + (settlement.delay or timedelta(0))
        return Answer.APPLIED

    def _is_as_left_by(self, settlement: Settlement) -> bool:
        """Whether an earlier try, whose answer was lost, wrote this very outcome: nobody has claimed it since."""
        attempts = settlement.attempts + (settlement.outcome in (Settling.RETRY, Settling.DEAD))
        left = (None, settlement.claims, attempts, _ENDED.get(settlement.outcome, PENDING))
        return (self.token, self.claims, self.attempts, self.state) == left

    def _verdict(self, road: Road, now: datetime) -> tuple[OutboxState, str | None]:
        if self.expires_at is not None and self.expires_at <= now:
            return OutboxState.EXPIRED, "expired"
        if self.token is not None and self.losses >= _limit(road):
            return OutboxState.DEAD, CRASH_LOOP
        window, first = road.idempotency_window, self.first_emitted_at
        if self.claims and window is not None and first is not None and first + window <= now:
            return OutboxState.NEEDS_REVIEW, "window_passed"
        return PENDING, self.failure

    def _good_for(self, road: Road, now: datetime) -> timedelta | None:
        ends = [] if self.expires_at is None else [self.expires_at]
        if self.claims and road.idempotency_window is not None and self.first_emitted_at is not None:
            ends.append(self.first_emitted_at + road.idempotency_window)
        return min(ends) - now if ends else None

    def _claimed(self, *, probe: bool, crashed: bool, good_for: timedelta | None) -> Claimed:
        message = self.message
        return Claimed(
            id=self.id,
            message_id=self.message_id,
            topic=message.topic,
            payload=message.payload,
            headers=message.headers,
            key=message.key,
            partition=message.partition,
            state=self.state,
            claims=self.claims,
            attempts=self.attempts,
            crashes=self.crashes,
            published_at=self.published_at,
            expires_at=self.expires_at,
            trace=message.trace,
            out_of_order=False,
            failure=self.failure,
            probe=probe,
            crashed=crashed,
            bucket=self.bucket,
            good_for=good_for,
        )


def _limit(road: Road) -> int:
    return max(road.max_crashes, LEAST_CRASHES)
