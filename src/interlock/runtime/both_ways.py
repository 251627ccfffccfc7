"""A block that serves `async with`, and `with` through the portal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from interlock.runtime.portal import portal

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

T_co = TypeVar("T_co", covariant=True)


class BothWays(Generic[T_co]):
    def __init__(self, block: AbstractAsyncContextManager[T_co, bool | None]) -> None:
        self._block = block

    async def __aenter__(self) -> T_co:
        return await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, error, traceback)

    def __enter__(self) -> T_co:
        return portal.call(self.__aenter__)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return portal.call(self.__aexit__, kind, error, traceback)
