"""Options of one enqueue, kept apart from the train's own arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from interlock.trains.gateway import Order
from interlock.trains.names import checked_name, name_of
from interlock.trains.options import checked_duration, checked_priority

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.trains.gateway import Gateway
    from interlock.trains.handle import Handle
    from interlock.trains.names import Named
    from interlock.trains.train import Train

P = ParamSpec("P")
T = TypeVar("T")


class Using(Generic[P, T]):
    def __init__(
        self,
        train: Train[P, Any, T],
        conn: object | None = None,
        *,
        delay: timedelta | None = None,
        priority: int | None = None,
        key: str | None = None,
        group: str | Named | None = None,
    ) -> None:
        self._train = train
        self._conn = conn
        self._delay = None if delay is None else checked_duration("delay", delay, zero=True)
        self._priority = checked_priority(priority)
        self._key = None if key is None else checked_name("key", key)
        self._group = None if group is None else name_of("group", group)

    def order(self, /, *args: P.args, **kwargs: P.kwargs) -> Order:
        """The run as it would be queued, checked now."""
        bound = self._train.bind(*args, **kwargs)
        return Order(bound, delay=self._delay, priority=self._priority, key=self._key, group=self._group)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Queue one run."""
        [handle] = self._gateway.enqueue(self._conn, [self.order(*args, **kwargs)])
        return handle

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[T]:
        """Queue one run."""
        [handle] = await self._gateway.aenqueue(self._conn, [self.order(*args, **kwargs)])
        return handle

    @property
    def _gateway(self) -> Gateway:
        return self._train.slot.require(self._train.name)
