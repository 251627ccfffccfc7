"""What a child process says: one JSON object per line, kept until a thread or a loop asks for it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]


class Mailbox:
    """Messages in the order they came; each is handed out once per `take`, and `all` forgets nothing."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._all: list[Message] = []
        self._waiting: list[Message] = []
        self._listeners: set[Callable[[], None]] = set()
        self.closed = False

    def put(self, line: bytes) -> None:
        if (message := _parsed(line)) is not None:
            with self._changed:
                self._all.append(message)
                self._waiting.append(message)
                self._announce()

    def close(self) -> None:
        """No more messages will come: the child closed its output, or it died."""
        with self._changed:
            self.closed = True
            self._announce()

    def all(self, kind: str) -> list[Message]:
        with self._changed:
            return [message for message in self._all if message["kind"] == kind]

    def take_blocking(self, kind: str, timeout: float) -> Message | None:
        """The next message of this kind, or None when the time is over or no more will come."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while (message := self._pop(kind)) is None and not self.closed:
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    return self._pop(kind)
            return message

    async def take(self, kind: str, timeout: float) -> Message | None:  # noqa: ASYNC109  None is an answer, not an error
        """The same without blocking the event loop."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        listener = lambda: loop.call_soon_threadsafe(changed.set)  # noqa: E731  a name to add and remove
        with self._changed:
            self._listeners.add(listener)
        try:
            async with asyncio.timeout(timeout):
                while (message := self._pop_now(kind)) is None and not self.closed:
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return self._pop_now(kind)
        else:
            return message
        finally:
            with self._changed:
                self._listeners.discard(listener)

    def _pop_now(self, kind: str) -> Message | None:
        with self._changed:
            return self._pop(kind)

    def _pop(self, kind: str) -> Message | None:
        for index, message in enumerate(self._waiting):
            if message["kind"] == kind:
                return self._waiting.pop(index)
        return None

    def _announce(self) -> None:
        self._changed.notify_all()
        for listener in self._listeners:
            listener()


def _parsed(line: bytes) -> Message | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "kind" in value else None
