"""What the shop does, whatever framework serves it: an order, its invoice and the news of it are one transaction."""

import asyncpg

from interlock import Interlock

app = Interlock(name="shop")

TABLE = "CREATE TABLE IF NOT EXISTS orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL)"


class SoldOut(Exception):
    """Raised after everything was written: none of it may stay."""


@app.train
async def print_invoice(order: int) -> str:
    return f"invoice-{order}.pdf"


@app.outbox.emitter("order.*")
async def tell_the_warehouse(message) -> None:
    print(f"warehouse: {message.payload}")


async def place_order(conn: asyncpg.Connection, item: str) -> int:
    """Either the order, its invoice job and its message exist afterwards, or none of them."""
    async with conn.transaction():
        order = await conn.fetchval("INSERT INTO orders (item) VALUES ($1) RETURNING id", item)
        await print_invoice.using(conn, key=f"invoice:{order}").aenqueue(order)
        await app.outbox.apublish(conn, "order.placed", {"order": order, "item": item}, key=f"order:{order}")
        if item == "unobtainium":
            raise SoldOut(item)
    return order
