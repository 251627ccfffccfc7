"""What `app.locks.hold(…)` answers: a context manager that takes a slot when it is entered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import InvalidOption
from interlock.runtime.portal import portal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from interlock.locks.lease import Lease


class Hold:
    """For `with` and `async with`; it may be entered again once it was left."""

    def __init__(self, take: Callable[[], Awaitable[Lease]]) -> None:
        self._take = take
        self._lease: Lease | None = None

    def __enter__(self) -> Lease:
        self._lease = portal.call(self._taken)
        return self._lease.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left().__exit__(kind, error, trace)

    async def __aenter__(self) -> Lease:
        self._lease = await self._taken()
        return await self._lease.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._left().__aexit__(kind, error, trace)

    async def _taken(self) -> Lease:
        if self._lease is not None:
            raise InvalidOption(
                option="hold", found=self._lease, expected="a hold that is not in use: make one per use"
            )
        return await self._take()

    def _left(self) -> Lease:
        lease, self._lease = self._lease, None
        if lease is None:
            raise AssertionError("left without having been entered")
        return lease
