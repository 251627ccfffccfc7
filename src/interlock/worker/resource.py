"""What an app's trains share for as long as their worker lives: a pool, a client, a model."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from interlock.errors import InvalidOption, ResourceNotOpen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

T = TypeVar("T")

Lifespan: TypeAlias = Callable[[], AsyncIterator[T]] | Callable[[], AbstractAsyncContextManager[T]]
"""An async generator function that yields once, as it is or made a context manager already."""

_CLOSED: Any = object()


class Resource(Generic[T]):
    """Opened once per worker process; `value` is what the function yielded."""

    def __init__(self, function: Lifespan[T]) -> None:
        self._manager = _as_manager(function)
        self.name = getattr(function, "__name__", "lifespan")
        self._value: T = _CLOSED

    @property
    def value(self) -> T:
        """What the function yielded; for code that this worker runs, in whichever thread."""
        if self._value is _CLOSED:
            raise ResourceNotOpen(name=self.name)
        return self._value

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[T, None]:
        """Open it for the block: what a worker does, and a test that calls a train like a plain function."""
        async with self._manager() as value:
            before, self._value = self._value, value
            try:
                yield value
            finally:
                self._value = before

    def __repr__(self) -> str:
        return f"Resource({self.name!r})"


def _as_manager(function: Any) -> Callable[[], AbstractAsyncContextManager[Any]]:
    if not callable(function) or not inspect.isasyncgenfunction(inspect.unwrap(function)) or _needs_arguments(function):
        expected = "an async generator function without parameters: async def, with one yield"
        raise InvalidOption(option="lifespan", found=function, expected=expected)
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    return cast("Callable[[], AbstractAsyncContextManager[Any]]", function)


def _needs_arguments(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    return False
