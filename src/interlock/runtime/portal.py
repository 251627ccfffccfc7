"""How a blocking call reaches async code: through one event loop in a thread of its own, opened on first use.

A fork copies the portal's memory but not its thread. The child forgets what it inherited without touching it (closing
the copy would take the parent's sockets out of the selector they share) and opens its own on first use.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from interlock.errors import SyncCallInEventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")

_CLEANUP = 1.0  # seconds that an interrupted call may use to clean up before the interrupt goes on
_CLOSING = 5.0  # seconds that all calls in progress may use when the portal closes

_inherited: list[object] = []


class _Home:
    """An event loop and the thread that runs it."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop = self._runner.get_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="interlock-portal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._closing.set)
        if self._thread is not threading.current_thread():
            self._thread.join(_CLOSING)

    def _serve(self) -> None:
        with self._runner:  # cancels and awaits what still runs at its end
            self._runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closing.wait()


class Portal:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home: _Home | None = None
        os.register_at_fork(after_in_child=_Forget(self))
        atexit.register(_Close(self))

    def call(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of the coroutine function, awaited in the portal's event loop, in the context of the caller."""
        refuse_in_event_loop(_twin(function))
        ended = threading.Event()

        async def run() -> T:
            try:
                return await function(*args, **kwargs)
            finally:
                ended.set()

        future = self._submit(run)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(_CLEANUP)
            raise

    def close(self) -> None:
        """Cancel what is in progress and end the thread; a later call opens the portal anew."""
        with self._lock:
            home, self._home = self._home, None
        if home is not None:
            home.close()

    def _submit(self, run: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        # Under the lock: a call that slipped in behind the closing would never be answered.
        with self._lock:
            if self._home is None:
                self._home = _Home()
            return asyncio.run_coroutine_threadsafe(run(), self._home.loop)

    def _forget(self) -> None:
        # Kept alive on purpose: collecting an event loop closes it.
        _inherited.append(self._home)
        self._lock, self._home = threading.Lock(), None


class _Forget:
    """Registered for the life of the process, without keeping the portal alive."""

    def __init__(self, portal: Portal) -> None:
        self._portal = weakref.ref(portal)

    def __call__(self) -> None:
        if (portal := self._portal()) is not None:
            portal._forget()  # noqa: SLF001  the two are one thing


class _Close(_Forget):
    def __call__(self) -> None:
        if (portal := self._portal()) is not None:
            portal.close()


def _twin(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", "a…")
    return "async with" if name == "__aenter__" else f"await {name}(…)"


def refuse_in_event_loop(twin: str) -> None:
    """Raise where a blocking call would stop an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SyncCallInEventLoop(twin=twin)


portal = Portal()
