"""What the demo's servers run: a shop with orders, invoices, a nightly load in fast motion, and troubles."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.app import Interlock
from interlock.model.outcome import Retry
from interlock.model.schedule import cron, every
from interlock.trains.options import Backoff
from interlock.worker.current import current_execution

if TYPE_CHECKING:
    from interlock.outbox.message import EmitContext, Message

LONGEST = "print invoice"
SOON = Backoff(timedelta(seconds=1), factor=1.5, max_delay=timedelta(seconds=3))
SETTINGS = {
    "name": "demo",
    "lease": timedelta(seconds=2),
    "heartbeat": timedelta(seconds=0.5),
    "recovery_interval": timedelta(seconds=0.3),
    "polling_interval": timedelta(seconds=1),
    "worker_slots": 4,
    "shutdown_timeout": timedelta(seconds=2),
}


def build(dsn: str | None = None, **options: Any) -> Interlock:
    """The app of the demo; in a server the environment says which database and which name."""
    app = Interlock(dsn, **SETTINGS, **options)
    _declare_orders(app)
    _declare_load(app)
    _declare_troubles(app)
    _declare_timer(app)
    return app


def _declare_orders(app: Interlock) -> None:
    """An order, its invoice and the message about it come to be in one transaction, or not at all."""
    billing = app.group("billing", max_active_jobs=6, priority=10)

    @app.train(name=LONGEST, group=billing)
    async def print_invoice(order: int) -> str:
        await asyncio.sleep(1.5)
        return f"invoice-{order}.pdf"

    @app.train(name="take order", group=billing)
    async def take_order() -> int:
        order, database = current_execution().id, await app.adatabase()
        async with database.transaction() as conn:
            await print_invoice.using(conn, key=f"invoice:{order}").aenqueue(order)
            await app.outbox.apublish(conn, "order.taken", {"order": order}, key=f"order:{order}")
        return order

    @app.outbox.emitter("order.*", timeout=2)
    async def tell_the_warehouse(message: Message, context: EmitContext) -> None:
        if message.payload["order"] % 5 == 0 and not context.redelivery:
            raise Retry(timedelta(seconds=1))
        await asyncio.sleep(0.05)

    app.schedule("orders", take_order.bind(), every(seconds=1), group=billing)


def _declare_load(app: Interlock) -> None:
    etl = app.group("etl", max_active_jobs=2, priority=20)

    @app.train(group=etl)
    async def extract(source: str) -> int:
        await asyncio.sleep(0.6)
        return len(source)

    @app.train(group=etl)
    async def load(table: str) -> str:
        await asyncio.sleep(0.4)
        return table

    @app.train(name="refresh report", group=etl)
    async def refresh_report() -> None:
        await asyncio.sleep(0.2)

    extracted = app.schedule("extract", extract.bind("api"), every(seconds=4), group=etl)
    loaded = extracted.then("load", load.bind("orders"), group=etl)
    loaded.then("refresh-report", refresh_report.bind(), group=etl)


def _declare_troubles(app: Interlock) -> None:
    @app.train(name="charge card", max_attempts=3, retry=SOON)
    async def charge_card() -> str:
        """Flaky: the bank answers at the second attempt."""
        await asyncio.sleep(0.1)
        if current_execution().attempt == 1:
            raise TimeoutError("the bank did not answer")
        return "charged"

    @app.train(name="import legacy file", max_attempts=2, retry=SOON)
    async def import_legacy_file() -> None:
        raise ValueError("row 7 names no customer")

    app.schedule("charges", charge_card.bind(), cron("*/3 * * * * *", tz="UTC"))
    app.schedule("legacy-import", import_legacy_file.bind(), every(seconds=5))


def _declare_timer(app: Interlock) -> None:
    """It fires on all three servers; two slots let two of them run at a time."""

    @app.timer(every(seconds=2), name="poll partner", max_concurrency=2, max_run_time=timedelta(seconds=5))
    async def poll_partner() -> None:
        await asyncio.sleep(0.8)
