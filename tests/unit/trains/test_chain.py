import asyncio
from dataclasses import dataclass

import pytest

from interlock.errors import (
    CancelledByRequest,
    ChainMismatch,
    InvalidInput,
    InvalidOption,
    InvalidTrain,
    JunctionFailed,
    LeaseLost,
)
from interlock.trains.registry import Registry
from interlock.trains.run import run_train


@dataclass
class Row:
    number: int


class Connection:
    """An object that JSON cannot hold; it may still pass between two junctions."""

    def __init__(self, rows):
        self.rows = rows


async def fetch(source: str, limit: int = 2) -> Connection:
    return Connection([Row(number) for number in range(limit)])


def transform(connection: Connection) -> list[Row]:
    return connection.rows


async def write(rows: list[Row], *, table: str = "target") -> int:
    return len(rows)


class Recorder:
    def __init__(self, log, cancel_at=None):
        self._log, self._cancel_at = log, cancel_at

    async def boundary(self, junction, index, total):
        self._log.append(("boundary", junction, index, total))
        if junction == self._cancel_at:
            raise CancelledByRequest(train="chain")


def logged_chain(log, *, fail=None):
    def step(name):
        def run(value: int) -> int:
            log.append(("run", name))
            if name == fail:
                raise OSError("disk on fire")
            return value + 1

        run.__name__ = name
        return run

    return Registry().chain("chain", step("a"), step("b"), step("c"))


async def test_the_output_of_one_junction_is_the_input_of_the_next():
    chain = Registry().chain("sync", fetch, transform, write)
    assert await run_train(chain, chain.bind("api", limit=3).input) == b"3"


async def test_a_chain_may_be_called_plainly_too():
    chain = Registry().chain("sync", fetch, transform, write)
    assert await chain("api", limit=4) == 4
    with pytest.raises(TypeError, match="source"):
        await chain()


async def test_trains_and_chains_are_junctions_of_a_chain():
    registry = Registry()

    @registry.train(name="numbers")
    async def numbers(count: int) -> list[int]:
        return list(range(count))

    @registry.train
    def total(values: list[int]) -> int:
        return sum(values)

    inner = registry.chain("inner", numbers, total)
    outer = registry.chain("outer", inner, half)
    log = []
    assert await run_train(outer, outer.bind(4).input, progress=Recorder(log)) == b"3.0"
    assert log == [("boundary", "numbers", 0, 3), ("boundary", "total", 1, 3), ("boundary", "half", 2, 3)]


def half(number: float) -> float:
    return number / 2


async def test_progress_is_recorded_at_each_boundary_before_the_junction_runs():
    log = []
    chain = logged_chain(log)
    assert await run_train(chain, chain.bind(0).input, progress=Recorder(log)) == b"3"
    assert log == [
        ("boundary", "a", 0, 3),
        ("run", "a"),
        ("boundary", "b", 1, 3),
        ("run", "b"),
        ("boundary", "c", 2, 3),
        ("run", "c"),
    ]


async def test_a_failure_short_circuits_and_names_the_junction():
    log = []
    chain = logged_chain(log, fail="b")
    with pytest.raises(
        JunctionFailed, match=r"train 'chain' failed in junction 'b': OSError\('disk on fire'\)"
    ) as failed:
        await run_train(chain, chain.bind(0).input)
    assert isinstance(failed.value.__cause__, OSError)
    assert log == [("run", "a"), ("run", "b")]


async def test_cancellation_at_a_boundary_runs_no_further_junction_and_is_no_failure():
    log = []
    chain = logged_chain(log)
    with pytest.raises(CancelledByRequest):
        await run_train(chain, chain.bind(0).input, progress=Recorder(log, cancel_at="b"))
    assert [entry for entry in log if entry[0] == "run"] == [("run", "a")]


@pytest.mark.parametrize("error", [CancelledByRequest(train="x"), LeaseLost(name="x"), asyncio.CancelledError()])
async def test_an_order_to_stop_inside_a_junction_is_no_failure_of_it(error):
    async def stop(value: int) -> int:
        raise error

    chain = Registry().chain("chain", stop)
    with pytest.raises(type(error)):
        await run_train(chain, chain.bind(1).input)


async def test_the_input_of_a_chain_is_checked_like_any_other():
    chain = Registry().chain("sync", fetch, transform, write)
    with pytest.raises(InvalidInput, match="train 'sync': limit: expected `int`"):
        chain.bind("api", limit="3")
    with pytest.raises(InvalidInput, match="'source' is missing"):
        await run_train(chain, b"{}")


def takes_two(rows: list[Row], table: str) -> None: ...


def takes_none() -> None: ...


def takes_default(rows: list[Row] = ()) -> None: ...


def takes_text(rows: list[str]) -> None: ...


@pytest.mark.parametrize(
    ("steps", "junction", "text"),
    [
        ((transform, fetch), "fetch", "'transform' returns list.*Row.*, but 'source' expects str"),
        ((fetch, write), "write", "'fetch' returns Connection, but 'rows' expects list"),
        ((fetch, transform, takes_text), "takes_text", r"expects list\[str\]"),
        ((fetch, transform, takes_two), "takes_two", "exactly one required parameter.*it has: rows, table"),
        ((fetch, transform, takes_none), "takes_none", "it has: none"),
        ((fetch, transform, takes_default), "takes_default", "it has: none"),
    ],
)
def test_junctions_that_do_not_fit_are_refused_when_the_chain_is_built(steps, junction, text):
    registry = Registry()
    with pytest.raises(ChainMismatch, match=text) as refused:
        registry.chain("bad", *steps)
    assert (refused.value.chain, refused.value.junction) == ("bad", junction)
    assert not registry.names()


def unannotated(rows) -> None: ...


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((), "the chain is empty"),
        ((fetch, transform, unannotated), "junction 'unannotated': parameter 'rows' has no annotation"),
        ((fetch,), "the output of type Connection cannot be written as JSON"),
        ((transform, write), "parameter 'connection' of type Connection cannot be written as JSON"),
        ((print,), "no function"),
    ],
)
def test_a_chain_that_could_not_run_is_refused_when_it_is_built(steps, text):
    with pytest.raises(InvalidTrain, match=text):
        Registry().chain("bad", *steps)


def test_a_chain_takes_the_options_of_a_train():
    registry = Registry()
    chain = registry.chain("sync", fetch, transform, write, aliases=["old-sync"], priority=3)
    assert registry.get("old-sync") is chain
    assert chain.options.priority == 3
    assert chain.is_async
    with pytest.raises(InvalidOption):
        registry.chain("other", fetch, transform, write, priority=64)
