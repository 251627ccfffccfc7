"""The app that every server of the example runs."""

import asyncio

from interlock import Interlock, every

app = Interlock(name="jobs")


@app.train
async def resize(picture: int) -> str:
    await asyncio.sleep(1)
    return f"{picture}.webp"


@app.timer(every(seconds=10), max_concurrency=1)
async def poll_partner() -> None:
    """On every server, but never on two at once."""
