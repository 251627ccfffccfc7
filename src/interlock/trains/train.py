"""A named, typed unit of work: calling it is a plain call, enqueueing it hands the call to a worker."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from interlock.trains.bound import Bound
from interlock.trains.using import Using

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from interlock.trains.gateway import GatewaySlot
    from interlock.trains.handle import Handle
    from interlock.trains.junction import CallPlain, Junction
    from interlock.trains.names import Named
    from interlock.trains.options import TrainOptions
    from interlock.trains.progress import Progress
    from interlock.trains.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Train(Generic[P, R, T]):
    """A declared function. `R` is what a call returns, `T` the output: for an async function `R` is awaited to `T`."""

    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        signature: Signature,
        junctions: tuple[Junction, ...],
        options: TrainOptions,
        slot: GatewaySlot,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = signature.train
        self.options = options
        self.signature = signature
        self.junctions = junctions
        self.slot = slot
        self._function = function
        self._unadorned: Using[P, T] = Using(self)

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        return self.junctions[0].is_async

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def bind(self, /, *args: P.args, **kwargs: P.kwargs) -> Bound[T]:
        """The train with its input, checked now."""
        return Bound(self.name, self.signature.encode(*args, **kwargs), self)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Queue one run."""
        return self._unadorned.enqueue(*args, **kwargs)

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Queue one run."""
        return await self._unadorned.aenqueue(*args, **kwargs)

    def using(
        self,
        conn: object | None = None,
        *,
        delay: timedelta | None = None,
        priority: int | None = None,
        key: str | None = None,
        group: str | Named | None = None,
    ) -> Using[P, T]:
        """The same train, enqueued in the caller's transaction or with options of its own."""
        return Using(self, conn, delay=delay, priority=priority, key=key, group=group)

    async def run(self, arguments: dict[str, Any], *, progress: Progress, call_plain: CallPlain) -> Any:
        """The output of one run with decoded arguments."""
        await progress.boundary(self.name, 0, 1)
        return await self.junctions[0].call(arguments, call_plain)

    def __reduce__(self) -> str:
        # By the name of the variable that holds it, as functions are: a pool child imports the module.
        return self.__qualname__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"
