"""Plain functions in threads that are never in the way of an exit.

The standard executor makes the interpreter wait at its end for every thread, and has few of them for all.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def in_own_thread(function: Callable[[], Any], name: str) -> asyncio.Future[Any]:
    """Run it in a thread that ends with it, with the caller's context variables."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    arguments = (function, contextvars.copy_context(), future)
    threading.Thread(target=run_and_answer, args=arguments, name=name, daemon=True).start()
    return future


def run_and_answer(function: Callable[[], Any], context: contextvars.Context, future: asyncio.Future[Any]) -> None:
    """Called in the thread; the answer is given in the event loop of the future."""
    if future.cancelled():
        return  # its time ran out while it waited for a thread
    try:
        output = context.run(function)
    except StopIteration as error:
        # A future cannot carry it: whoever awaits the thread would wait for ever.
        raised = RuntimeError("the function raised StopIteration")
        raised.__cause__ = error
        _answer(future, future.set_exception, raised)
    except BaseException as error:  # noqa: BLE001  SystemExit ends the run, not the process
        _answer(future, future.set_exception, error)
    else:
        _answer(future, future.set_result, output)


def _answer(future: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
    def unless_done() -> None:
        if not future.done():
            settle(value)

    with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(unless_done)
