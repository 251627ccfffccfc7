"""The calls of an app that enqueue many runs at once, and that say which trains run elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption
from interlock.trains.bound import Bound
from interlock.trains.gateway import Order

if TYPE_CHECKING:
    from interlock.dispatch.gateway import WorkGateway
    from interlock.dispatch.routes import Routes
    from interlock.dispatch.submitters.protocol import Submitter
    from interlock.trains.handle import Handle
    from interlock.trains.registry import Registry
    from interlock.trains.train import Train


RUNS = "a list of train.bind(…), or train.using(…).order(…) for a run with options of its own"


class EnqueueingApp:
    work: WorkGateway
    trains: Registry
    routes: Routes

    def add_submitter(self, submitter: Submitter, *, trains: Iterable[Train[..., Any, Any] | str]) -> None:
        """Let these trains run elsewhere: the servers of this app submit them, and do not run them themselves.

        They go on being declared, enqueued and scheduled like all others.
        """
        self.routes.add(submitter, trains)

    async def aenqueue_many(
        self, runs: Iterable[Bound[Any] | Order], *, conn: object | None = None
    ) -> list[Handle[Any]]:
        """Queue many runs in one round trip, in the caller's transaction when given its connection.

        A run is `train.bind(…)`, or `train.using(…).order(…)` for one with options of its own; trains may differ. The
        handles come back in the order of the runs. All are queued, or none.
        """
        orders = self._orders(runs)
        return await self.work.aenqueue(conn, orders) if orders else []

    def enqueue_many(self, runs: Iterable[Bound[Any] | Order], *, conn: object | None = None) -> list[Handle[Any]]:
        """The blocking twin of `aenqueue_many`."""
        orders = self._orders(runs)
        return self.work.enqueue(conn, orders) if orders else []

    def _orders(self, runs: Iterable[Bound[Any] | Order]) -> list[Order]:
        if not isinstance(runs, Iterable):
            raise InvalidOption(option="runs", found=runs, expected=RUNS)
        orders = [Order(run) if type(run) is Bound else _order(run) for run in runs]
        for train in {order.bound.declaration for order in orders}:
            self.trains.refuse_foreign(train)
        return orders


def _order(run: object) -> Order:
    if isinstance(run, Bound):
        return Order(run)
    if not isinstance(run, Order):
        raise InvalidOption(option="runs", found=run, expected=RUNS)
    return run
