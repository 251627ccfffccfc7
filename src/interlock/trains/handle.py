"""Work that was enqueued, seen by whoever enqueued it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from interlock.trains.options import checked_seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.trains.gateway import Gateway
    from interlock.trains.train import Train

T = TypeVar("T")


class Handle(Generic[T]):
    """Answers how the work is doing and what came out of it."""

    __slots__ = ("_gateway", "id", "train")

    def __init__(self, id: int, train: Train[..., Any, T], gateway: Gateway) -> None:  # noqa: A002  the entry's own word
        self.id = id
        self.train = train
        self._gateway = gateway

    def result(self, timeout: float | timedelta | None = None) -> T:
        """The output once the work has ended; raises what failed. The timeout is in seconds, or a timedelta."""
        return self._decoded(self._gateway.result(self, checked_seconds("timeout", timeout)))

    async def aresult(self, timeout: float | timedelta | None = None) -> T:  # noqa: ASYNC109  it bounds a wait, the work goes on
        """The output once the work has ended; raises what failed. The timeout is in seconds, or a timedelta."""
        return self._decoded(await self._gateway.aresult(self, checked_seconds("timeout", timeout)))

    def status(self) -> str:
        return self._gateway.status(self)

    async def astatus(self) -> str:
        return await self._gateway.astatus(self)

    def _decoded(self, raw: bytes | str) -> T:
        return cast("T", self.train.signature.decode_output(raw))

    def __repr__(self) -> str:
        return f"Handle(id={self.id}, train={self.train.name!r})"
