"""What the drain says about messages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.locks.deadline import clock
from interlock.model.message import Answer, Settling
from interlock.observe.events.outbox import MessageDelivered, MessageEnded, MessageRetried, MessageSettleRefused

if TYPE_CHECKING:
    from interlock.model.message import Claimed, Settlement
    from interlock.observe.bus import Emit
    from interlock.outbox.held import Held


class Report:
    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def ended(self, claimed: Claimed) -> None:
        """The claim itself found that it must not be delivered any more."""
        self._emit(
            MessageEnded(
                message_id=claimed.message_id,
                topic=claimed.topic,
                state=claimed.state,
                failure=claimed.failure or "",
            )
        )

    def settled(self, held: Held, settlement: Settlement, answer: Answer) -> None:
        message_id, topic = held.claimed.message_id, held.claimed.topic
        if answer is not Answer.APPLIED:
            self._emit(
                MessageSettleRefused(
                    message_id=message_id,
                    topic=topic,
                    outcome=settlement.outcome,
                    answer=answer,
                    record_id=settlement.record_id,
                )
            )
        elif settlement.outcome is Settling.DELIVERED:
            self._emit(
                MessageDelivered(
                    message_id=message_id,
                    topic=topic,
                    took=timedelta(seconds=clock() - held.started),
                    record_id=settlement.record_id,
                    redelivery=held.claimed.claims > 1,
                )
            )
        else:
            self._not_delivered(held, settlement)

    def _not_delivered(self, held: Held, settlement: Settlement) -> None:
        message_id, topic, reason = held.claimed.message_id, held.claimed.topic, settlement.error_message or ""
        if settlement.outcome is Settling.DEAD:
            failure = settlement.failure or ""
            self._emit(MessageEnded(message_id=message_id, topic=topic, state="dead", failure=failure, reason=reason))
            return
        self._emit(
            MessageRetried(
                message_id=message_id,
                topic=topic,
                outcome=settlement.outcome,
                reason=reason,
                retry_in=settlement.delay or timedelta(0),
                attempt=held.claimed.attempts + 1,
            )
        )
