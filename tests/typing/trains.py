"""What mypy --strict must accept and must refuse in a user's code.

A refusal is written as an ignore with its code: an ignore that suppresses nothing is itself an error, so every one of
them proves that the mistake is reported.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, assert_type

from interlock.trains.bound import Bound
from interlock.trains.handle import Handle
from interlock.trains.options import Backoff
from interlock.trains.registry import Registry

if TYPE_CHECKING:
    from interlock.trains.chain import Chain

app = Registry()


@dataclass
class Row:
    number: int


@app.train
async def greet(name: str, times: int = 1) -> str:
    return f"hello {name}! " * times


@app.train
def count(rows: list[Row], *, strict: bool = False) -> int:
    return len(rows) + strict


@app.train(name="report", priority=3, tags=["slow"], retry=Backoff(timedelta(seconds=5)), timeout=timedelta(minutes=1))
async def report(row: Row | None) -> Row:
    return row or Row(0)


@app.train(process=True, aliases=("crunch-old",))
def crunch(number: float) -> None:
    number / 2


async def calls() -> None:
    assert_type(await greet("Ada", times=2), str)
    assert_type(count([]), int)
    assert_type(await report(None), Row)
    assert_type(crunch(1), None)
    await greet(3)  # type: ignore[arg-type]
    count()  # type: ignore[call-arg]


def binds() -> None:
    assert_type(greet.bind("Ada"), Bound[str])
    assert_type(count.bind([Row(1)], strict=True), Bound[int])
    assert_type(report.bind(None), Bound[Row])
    greet.bind(3)  # type: ignore[arg-type]
    greet.bind("Ada", times="2")  # type: ignore[arg-type]
    greet.bind()  # type: ignore[call-arg]
    greet.bind("Ada", 1, 2)  # type: ignore[call-arg]
    greet.bind("Ada", loud=True)  # type: ignore[call-arg]
    count.bind([1])  # type: ignore[list-item]
    count.bind([], True)  # type: ignore[call-arg]
    report.bind(3)  # type: ignore[arg-type]


def enqueues() -> None:
    assert_type(greet.enqueue("Ada", times=2), Handle[str])
    assert_type(greet.enqueue("Ada").result(timeout=10), str)
    assert_type(report.enqueue(Row(1)).result(), Row)
    greet.enqueue(3)  # type: ignore[arg-type]
    greet.enqueue()  # type: ignore[call-arg]
    greet.enqueue("Ada", delay=timedelta(1))  # type: ignore[call-arg]
    count.enqueue("rows")  # type: ignore[arg-type]


async def enqueues_async() -> None:
    assert_type(await greet.aenqueue("Ada"), Handle[str])
    assert_type(await (await count.aenqueue([])).aresult(timeout=10), int)
    await greet.aenqueue(3)  # type: ignore[arg-type]
    await greet.aenqueue("Ada", times=None)  # type: ignore[arg-type]
    await greet.aenqueue()  # type: ignore[call-arg]


async def enqueues_with_options(session: object) -> None:
    using = greet.using(session, delay=timedelta(minutes=5), priority=20, key="greet:ada", group="etl")
    assert_type(await using.aenqueue("Ada", times=2), Handle[str])
    assert_type(using.enqueue("Ada"), Handle[str])
    await using.aenqueue(3)  # type: ignore[arg-type]
    using.enqueue("Ada", times="2")  # type: ignore[arg-type]
    using.enqueue()  # type: ignore[call-arg]
    greet.using(delay=5)  # type: ignore[arg-type]
    greet.using(priority="high")  # type: ignore[arg-type]
    greet.using(colour="red")  # type: ignore[call-arg]


def declares_wrongly() -> None:
    app.train(max_attempts="3")(crunch)  # type: ignore[call-overload]
    app.train(colour="red")  # type: ignore[call-overload]
    app.chain("bad-option", greet, process=True)  # type: ignore[call-overload]


async def fetch(source: str, limit: int = 10) -> list[Row]:
    return [Row(number) for number in range(limit)][: len(source)]


def transform(rows: list[Row]) -> dict[str, int]:
    return {str(row.number): row.number for row in rows}


async def write(values: dict[str, int], *, table: str = "t") -> int:
    return len(values) + len(table)


def describe(number: float) -> str:
    return str(number)


def measure(text: str) -> int:
    return len(text)


async def finish(number: int) -> bytes:
    return bytes(number)


async def chains() -> None:
    sync = app.chain("sync", fetch, transform, write, priority=3)
    assert_type(await sync("api", limit=3), int)
    assert_type(sync.bind("api"), Bound[int])
    assert_type((await sync.aenqueue("api", limit=1)).result(), int)
    sync.bind(3)  # type: ignore[arg-type]
    sync.enqueue("api", limit="3")  # type: ignore[arg-type]
    await sync.aenqueue()  # type: ignore[call-arg]

    assert_type(app.chain("1", fetch).bind("api"), Bound[list[Row]])
    assert_type(app.chain("1p", describe).bind(1), Bound[str])
    assert_type(app.chain("2", fetch, transform).bind("api"), Bound[dict[str, int]])
    assert_type(app.chain("trains", fetch, count).bind("api"), Bound[int])
    assert_type(app.chain("4", fetch, transform, write, describe).bind("api"), Bound[str])
    assert_type(app.chain("5", fetch, transform, write, describe, measure).bind("api"), Bound[int])
    assert_type(app.chain("6", fetch, transform, write, describe, measure, finish).bind("api"), Bound[bytes])
    assert_type(app.chain("nested", sync, describe).bind("api"), Bound[str])
    longer = app.chain("8", fetch, transform, write, describe, measure, describe, measure, finish, priority=3)
    assert_type(longer.bind("api", limit=2), Bound[Any])
    longer.bind(3)  # type: ignore[arg-type]
    chain: Chain[[float], str] = app.chain("annotated", describe)
    chain.bind(1.5)


def chains_that_do_not_fit() -> None:
    app.chain("first", fetch, write)  # type: ignore[arg-type]
    app.chain("order", transform, fetch)  # type: ignore[arg-type]
    app.chain("train", greet, finish)  # type: ignore[arg-type]
    app.chain("third", fetch, transform, measure)  # type: ignore[misc, arg-type]
    app.chain("long", fetch, write, write, write, write, write, write)  # type: ignore[arg-type]
    app.chain("empty")  # type: ignore[call-overload]
