"""What `app.locks.hold(…)` answers: a context manager that takes a slot when it is entered."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from interlock.errors import InvalidOption
from interlock.runtime.portal import portal, refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import TracebackType

    from interlock.locks.lease import Lease

L = TypeVar("L", bound="Lease | None")


def take_blocking(take: Callable[[], Coroutine[object, object, L]]) -> L:
    """The slot, which goes back if a signal interrupts its caller: nobody would know of it, and it would be renewed."""
    taken: list[L] = []

    async def keep() -> None:
        taken.append(await take())

    try:
        portal.call(keep)
    except BaseException:
        for lease in taken:
            if lease is not None:
                lease.let_go()
        raise
    return taken[0]


class Hold:
    """For `with` and `async with`; it may be entered again once it was left."""

    def __init__(self, take: Callable[[], Coroutine[object, object, Lease]]) -> None:
        self._take = take
        self._lease: Lease | None = None
        self._used = False

    def __enter__(self) -> Lease:
        refuse_in_event_loop("async with")
        with self._entering():
            self._lease = take_blocking(self._take)
            return self._lease.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left().__exit__(kind, error, trace)

    async def __aenter__(self) -> Lease:
        with self._entering():
            self._lease = await self._take()
            return await self._lease.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._left().__aexit__(kind, error, trace)

    @contextmanager
    def _entering(self) -> Iterator[None]:
        """Marked before it waits: of two who enter at once, one would never be left."""
        if self._used:
            raise InvalidOption(option="hold", found="one in use", expected="a hold of one's own: make one per use")
        self._used = True
        try:
            yield
        except BaseException:
            self._lease, self._used = None, False
            raise

    def _left(self) -> Lease:
        lease, self._lease, self._used = self._lease, None, False
        if lease is None:
            raise AssertionError("left without having been entered")
        return lease
