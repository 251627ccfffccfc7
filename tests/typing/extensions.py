"""What type checkers know about resources, middleware and hooks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, assert_type

from interlock import Interlock, Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interlock import CallNext, FinishedRun

app = Interlock("postgresql://localhost/none")


@app.lifespan
async def numbers() -> AsyncIterator[list[int]]:
    yield [1]


@app.lifespan
@asynccontextmanager
async def text() -> AsyncIterator[str]:
    yield "a"


@app.middleware
async def around(call_next: CallNext) -> object:
    return await call_next()


@app.on_success
@app.on_failure
async def heard(run: FinishedRun) -> None:
    assert_type(run.attempt, int)


@app.train(on_success=heard, on_failure=heard)
async def work() -> int:
    assert_type(numbers, Resource[list[int]])
    assert_type(text.value, str)
    async with numbers.opened() as opened:
        assert_type(opened, list[int])
    return numbers.value[0]


def plain(run: FinishedRun) -> None: ...


async def other(run: int) -> None: ...


def refused() -> None:
    app.on_success(plain)  # type: ignore[type-var]
    app.on_failure(other)  # type: ignore[type-var]
    app.middleware(plain)  # type: ignore[type-var]
    app.lifespan(other)  # type: ignore[arg-type]
    app.train(on_success=plain)(plain)  # type: ignore[arg-type]
