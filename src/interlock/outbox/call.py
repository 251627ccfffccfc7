"""Calling an emitter: in time, async or in a thread, and whatever it raises is an answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from interlock.outbox.message import EmitContext, Message
from interlock.outbox.outcome import EmitTimeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.message import Claimed
    from interlock.outbox.emitter import Emitter


async def call_one(emitter: Emitter, claimed: Claimed) -> Any:
    """What the emitter answered or raised. A plain function that overruns its time goes on in its thread, unheard."""
    message, context = Message(claimed, emitter.load), EmitContext(claimed, emitter.seconds)
    return await _called(emitter, (message, context) if emitter.takes_context else (message,))


async def call_batch(emitter: Emitter, claimed: Sequence[Claimed]) -> list[Any]:
    """One answer per message: from a list of the same length, or the same for all."""
    messages = [Message(each, emitter.load) for each in claimed]
    contexts = [EmitContext(each, emitter.seconds) for each in claimed]
    answer = await _called(emitter, (messages, contexts) if emitter.takes_context else (messages,))
    if not isinstance(answer, list):
        return [answer] * len(claimed)
    if len(answer) != len(claimed):
        return [ValueError(f"the emitter answered {len(answer)} outcomes for {len(claimed)} messages")] * len(claimed)
    return answer


async def _called(emitter: Emitter, arguments: tuple[Any, ...]) -> Any:
    scope = asyncio.timeout(emitter.seconds)
    try:
        async with scope:
            if emitter.is_async:
                return await emitter.function(*arguments)
            return await asyncio.to_thread(emitter.function, *arguments)
    except TimeoutError as error:
        return EmitTimeout(emitter.seconds) if scope.expired() else error
    except Exception as error:  # noqa: BLE001  an emitter may raise anything; it is its answer
        return error
