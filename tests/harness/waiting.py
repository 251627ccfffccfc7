"""Waiting for facts that only another process can bring about: the one place in the tests that polls."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

INTERVAL = 0.01
PATIENCE = 60.0  # costs nothing when things go right, and a busy machine may take its time


class NeverHappenedError(AssertionError):
    """What a test waited for did not come true in time."""


async def eventually(predicate: Callable[[], Any], timeout: float = PATIENCE, what: str = "") -> Any:  # noqa: ASYNC109  the timeout names what was awaited
    """The first truthy answer of the predicate, which may be a plain or an async function."""
    deadline = time.monotonic() + timeout
    while True:
        answer = predicate()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        _give_up_after(deadline, timeout, what or _name_of(predicate), answer)
        await asyncio.sleep(INTERVAL)


def eventually_blocking(predicate: Callable[[], Any], timeout: float = PATIENCE, what: str = "") -> Any:
    """The same for synchronous tests and fixtures."""
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        _give_up_after(deadline, timeout, what or _name_of(predicate), answer)
        time.sleep(INTERVAL)
    return answer


def _give_up_after(deadline: float, timeout: float, what: str, last: object) -> None:
    if time.monotonic() > deadline:
        raise NeverHappenedError(f"{what} did not come true within {timeout} s; the last answer was {last!r}")


def _name_of(predicate: Callable[[], Any]) -> str:
    return getattr(predicate, "__qualname__", repr(predicate))
