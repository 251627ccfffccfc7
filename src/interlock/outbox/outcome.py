"""What the end of a delivery means: decided once, from what the emitter answered or raised."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.locks.deadline import clock
from interlock.model.failure import message_of, shortened
from interlock.model.message import MAX_ATTEMPTS, Dead, Delivered, Settlement, Settling
from interlock.model.outcome import Retry, Snooze

if TYPE_CHECKING:
    from interlock.outbox.emitter import Emitter
    from interlock.outbox.held import Held

LONGEST_MESSAGE = 4000
LONGEST_WORD = 500


class EmitTimeout(Exception):
    """The emitter did not come to an end in its time; whether the receiver has the message is unknown."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g} s")


INTERRUPTED = Snooze(timedelta(0), "the worker was shut down during the delivery")


def settlement_of(held: Held, emitter: Emitter, answer: Any) -> Settlement:
    """How to settle a delivery that answered, or raised, this; any answer that is no outcome is a delivery."""
    match answer:
        case Delivered(record_id=record_id):
            return _delivered(held, record_id)
        case Snooze(after=after):
            return _settlement(held, Settling.SNOOZE, answer)._replace(delay=after)
        case Dead(code=code):
            return _settlement(held, Settling.DEAD, answer)._replace(failure=_text(code))
        case Retry(after=after):
            return _failed(held, emitter, answer, after)
        case BaseException():
            return _failed(held, emitter, answer, None)
        case _:
            return _delivered(held, answer if isinstance(answer, str) else None)


def _delivered(held: Held, record_id: str | None) -> Settlement:
    return _ended(held, Settling.DELIVERED, None if record_id is None else _text(record_id))


def _text(found: object) -> str:
    """Record ids and codes are often numbers."""
    return message_of(found)[:LONGEST_WORD]


def _failed(held: Held, emitter: Emitter, error: BaseException, after: timedelta | None) -> Settlement:
    failures = held.claimed.attempts + 1
    if failures >= emitter.max_attempts:
        return _settlement(held, Settling.DEAD, error)._replace(failure=MAX_ATTEMPTS)
    delay = emitter.delay_after(failures) if after is None else after
    failure = "timeout" if isinstance(error, EmitTimeout) else "error"
    return _settlement(held, Settling.RETRY, error)._replace(failure=failure, delay=delay)


def _settlement(held: Held, outcome: Settling, error: BaseException) -> Settlement:
    return _ended(held, outcome)._replace(
        error_type=type(error).__name__,
        error_message=shortened(message_of(error), LONGEST_MESSAGE),
        took=timedelta(seconds=clock() - held.started),
    )


def _ended(held: Held, outcome: Settling, record_id: str | None = None) -> Settlement:
    claimed = held.claimed
    return Settlement(claimed.id, held.token, outcome, record_id, claims=claimed.claims, attempts=claimed.attempts)
