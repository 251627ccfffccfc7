"""The calls of an app that enqueue many runs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.trains.bound import Bound
from interlock.trains.gateway import Order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.dispatch.gateway import WorkGateway
    from interlock.trains.handle import Handle


class EnqueueingApp:
    work: WorkGateway

    async def aenqueue_many(
        self, runs: Iterable[Bound[Any] | Order], *, conn: object | None = None
    ) -> list[Handle[Any]]:
        """Queue many runs in one round trip, in the caller's transaction when given its connection.

        A run is `train.bind(…)`, or `train.using(…).order(…)` for one with options of its own; trains may differ. The
        handles come back in the order of the runs. All are queued, or none.
        """
        orders = _orders(runs)
        return await self.work.aenqueue(conn, orders) if orders else []

    def enqueue_many(self, runs: Iterable[Bound[Any] | Order], *, conn: object | None = None) -> list[Handle[Any]]:
        """The blocking twin of `aenqueue_many`."""
        orders = _orders(runs)
        return self.work.enqueue(conn, orders) if orders else []


def _orders(runs: Iterable[Bound[Any] | Order]) -> list[Order]:
    return [Order(run) if isinstance(run, Bound) else run for run in runs]
