import asyncio
import contextvars
import functools
import threading

import pytest

from interlock.errors import CancelledByRequest
from interlock.trains.registry import Registry
from interlock.trains.run import run_plain, run_train

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class Recorder:
    def __init__(self, cancel_at=None):
        self.boundaries, self._cancel_at = [], cancel_at

    async def boundary(self, junction, index, total):
        self.boundaries.append((junction, index, total))
        if junction == self._cancel_at:
            raise CancelledByRequest(train="any")


def test_a_plain_function_runs_beside_the_event_loop_with_its_context():
    @Registry().train
    def observe() -> tuple[bool, str]:
        return threading.current_thread() is threading.main_thread(), who.get()

    async def main():
        who.set("Ada")
        return await run_train(observe, b"{}")

    assert asyncio.run(main()) == b'[false,"Ada"]'


async def test_an_async_function_runs_on_the_event_loop():
    loop = asyncio.get_running_loop()

    @Registry().train
    async def observe() -> bool:
        return asyncio.get_running_loop() is loop

    assert await run_train(observe, b"{}") == b"true"


async def test_the_runner_of_plain_functions_is_the_callers_choice():
    async def here(function):
        return function()

    @Registry().train
    def observe() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await run_train(observe, b"{}", call_plain=here) == b"true"


async def test_a_train_of_one_function_has_one_boundary_named_as_the_train():
    progress = Recorder()
    await run_train(Registry().train(lambda: None, name="single"), b"{}", progress=progress)
    assert progress.boundaries == [("single", 0, 1)]


async def test_a_train_cancelled_at_its_boundary_does_not_run():
    ran = []
    train = Registry().train(lambda: ran.append(1), name="single")
    with pytest.raises(CancelledByRequest):
        await run_train(train, b"{}", progress=Recorder(cancel_at="single"))
    assert ran == []


async def test_what_a_single_function_raises_comes_out_as_it_is():
    @Registry().train
    async def fail() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await run_train(fail, b"{}")


async def test_stop_iteration_in_a_thread_fails_instead_of_hanging():
    @Registry().train
    def first(numbers: list[int]) -> int:
        return next(iter(numbers))

    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await run_train(first, b'{"numbers":[]}')


async def test_a_plain_wrapper_around_an_async_function_is_awaited():
    async def inner(number: int) -> int:
        return number + 1

    @functools.wraps(inner)
    def outer(number):
        return inner(number)

    assert await run_train(Registry().train(outer), b'{"number":1}') == b"2"


def test_a_pool_child_runs_a_plain_function_in_its_own_thread():
    @Registry().train
    def double(number: int) -> int:
        return number * 2

    assert run_plain(double, double.bind(4).input) == b"8"
