"""Calling an emitter: in time, async or in a thread, and whatever it raises is an answer."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from interlock.outbox.message import EmitContext, Message
from interlock.outbox.outcome import EmitTimeout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.message import Claimed
    from interlock.outbox.emitter import Emitter
    from interlock.runtime.threads import Threads


async def call_one(emitter: Emitter, claimed: Claimed, threads: Threads) -> Any:
    """What the emitter answered or raised. A plain function that overruns its time goes on in its thread, unheard."""
    message, context = Message(claimed, emitter.load), EmitContext(claimed, emitter.seconds)
    return await _called(emitter, (message, context) if emitter.takes_context else (message,), threads)


async def call_batch(emitter: Emitter, claimed: Sequence[Claimed], threads: Threads) -> list[Any]:
    """One answer per message: from a list (or a tuple) of the same length, or the same for all."""
    messages = [Message(each, emitter.load) for each in claimed]
    contexts = [EmitContext(each, emitter.seconds) for each in claimed]
    answer = await _called(emitter, (messages, contexts) if emitter.takes_context else (messages,), threads)
    if not isinstance(answer, list | tuple):
        return [answer] * len(claimed)
    if len(answer) != len(claimed):
        return [ValueError(f"the emitter answered {len(answer)} outcomes for {len(claimed)} messages")] * len(claimed)
    return list(answer)


async def _called(emitter: Emitter, arguments: tuple[Any, ...], threads: Threads) -> Any:
    scope = asyncio.timeout(emitter.seconds)
    try:
        async with scope:
            if emitter.is_async:
                return await emitter.function(*arguments)
            answer = await threads.call(partial(emitter.function, *arguments))
            # A plain wrapper around an async function hands back its coroutine: not awaited, it delivers nothing.
            return await answer if inspect.isawaitable(answer) else answer
    except TimeoutError as error:
        return EmitTimeout(emitter.seconds) if scope.expired() else error
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        return error  # of something that the emitter waited for, and no end of this worker
    except BaseException as error:  # noqa: BLE001  an emitter may raise anything; it is its answer
        return error


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
