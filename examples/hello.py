"""The smallest app: one train that is enqueued, one that is scheduled."""

import asyncio

from interlock import Interlock, every

app = Interlock()


@app.train
async def greet(name: str, times: int = 1) -> str:
    return f"hello {name}! " * times


@app.train
def tidy_up() -> None:
    print("tidy")


app.schedule("tidy-up", tidy_up.bind(), every(minutes=5))


async def main() -> None:
    async with app.running():
        handle = await greet.aenqueue("Ada", times=2)
        print(await handle.aresult(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
