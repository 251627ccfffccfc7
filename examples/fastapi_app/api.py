"""The HTTP side. It only enqueues: run servers with `interlock -a orders:app run`, as many as you like.

INTERLOCK_DSN names the database of both; without it, both use the private one of this folder.
"""

from contextlib import asynccontextmanager

import asyncpg
from orders import TABLE, SoldOut, app, place_order, print_invoice

try:
    from fastapi import FastAPI, HTTPException
except ImportError:
    raise SystemExit("this example needs FastAPI: pip install fastapi uvicorn") from None


@asynccontextmanager
async def lifespan(api: FastAPI):
    """Be a client of Interlock for as long as the API runs, beside the API's own pool."""
    async with app, asyncpg.create_pool(app.dsn) as api.state.pool:
        await api.state.pool.execute(TABLE)
        yield


api = FastAPI(lifespan=lifespan)


@api.post("/orders/{item}", status_code=201)
async def order(item: str) -> dict[str, int]:
    async with api.state.pool.acquire() as conn:
        try:
            return {"order": await place_order(conn, item)}
        except SoldOut:
            raise HTTPException(409, f"{item} is sold out") from None


@api.post("/invoices/{number}/again", status_code=202)
async def print_again(number: int) -> dict[str, str]:
    handle = await print_invoice.aenqueue(number)
    return {"entry": str(handle.id)}
