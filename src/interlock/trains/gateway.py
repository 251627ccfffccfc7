"""The way from a train to the work queue: who enqueues, and what is handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from interlock.errors import TrainWithoutApp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from interlock.trains.bound import Bound
    from interlock.trains.handle import Handle


class Order(Struct, frozen=True, gc=False):
    """One run that was asked for: its input, checked, and how to queue it. A struct, because bulk makes thousands."""

    bound: Bound[Any]
    delay: timedelta | None = None
    priority: int | None = None
    key: str | None = None
    group: str | None = None


class Gateway(Protocol):
    """Writes orders to the work queue, in the caller's own transaction when given one, and answers for them.

    The handles come back in the order of the orders. `result` waits for the end of the work, answers the output as
    stored, and raises what failed.
    """

    def enqueue(self, conn: object | None, orders: Sequence[Order]) -> list[Handle[Any]]: ...

    async def aenqueue(self, conn: object | None, orders: Sequence[Order]) -> list[Handle[Any]]: ...

    def result(self, handle: Handle[Any], timeout: float | None) -> bytes | str: ...

    async def aresult(self, handle: Handle[Any], timeout: float | None) -> bytes | str: ...  # noqa: ASYNC109  it bounds a wait for another process, which goes on

    def status(self, handle: Handle[Any]) -> str: ...

    async def astatus(self, handle: Handle[Any]) -> str: ...


class GatewaySlot:
    """The place where an app puts its gateway once it has one; its trains look here at each call."""

    def __init__(self) -> None:
        self.gateway: Gateway | None = None

    def require(self, train: str) -> Gateway:
        if self.gateway is None:
            raise TrainWithoutApp(train=train)
        return self.gateway
