from datetime import timedelta

import pytest

from interlock.errors import InvalidInput, InvalidOption
from interlock.trains.gateway import Order
from interlock.trains.handle import Handle
from interlock.trains.registry import Registry


class MemoryGateway:
    """Keeps what was ordered and answers every result with the stored output."""

    def __init__(self, output=b'"done"'):
        self.orders, self.output, self.asked = [], output, []

    def enqueue(self, conn, orders):
        self.orders.append((conn, list(orders)))
        return [Handle(number, order.bound.declaration, self) for number, order in enumerate(orders, 1)]

    async def aenqueue(self, conn, orders):
        return self.enqueue(conn, orders)

    def result(self, handle, timeout):
        self.asked.append((handle.id, timeout))
        return self.output

    async def aresult(self, handle, timeout):  # noqa: ASYNC109  the gateway's own signature
        return self.result(handle, timeout)

    def status(self, handle):
        return f"{handle.train.name} is queued"

    async def astatus(self, handle):
        return self.status(handle)


@pytest.fixture
def gateway():
    return MemoryGateway()


@pytest.fixture
def greet(gateway):
    registry = Registry()
    registry.attach(gateway)

    @registry.train
    async def greet(name: str, times: int = 1) -> str:
        return name * times

    return greet


async def test_enqueue_hands_over_one_checked_order(greet, gateway):
    await greet.aenqueue("Ada", times=2)
    greet.enqueue("Bob")
    assert gateway.orders == [(None, [Order(greet.bind("Ada", 2))]), (None, [Order(greet.bind("Bob"))])]


async def test_using_carries_the_callers_connection_and_options(greet, gateway):
    session = object()
    using = greet.using(session, delay=timedelta(minutes=5), priority=20, key="greet:ada", group="etl")
    await using.aenqueue("Ada")
    using.enqueue("Ada")
    order = Order(greet.bind("Ada"), delay=timedelta(minutes=5), priority=20, key="greet:ada", group="etl")
    assert gateway.orders == [(session, [order]), (session, [order])]


async def test_a_bad_input_reaches_no_gateway(greet, gateway):
    with pytest.raises(InvalidInput):
        greet.enqueue(3)
    with pytest.raises(InvalidInput):
        await greet.aenqueue()
    with pytest.raises(InvalidInput):
        await greet.using(key="k").aenqueue("Ada", times="2")
    assert gateway.orders == []


@pytest.mark.parametrize(
    "options",
    [
        {"delay": timedelta(seconds=-1)},
        {"delay": 5},
        {"priority": 64},
        {"priority": True},
        {"key": ""},
        {"key": "a\0"},
        {"group": ""},
    ],
)
def test_a_bad_option_of_one_enqueue_is_refused(greet, options):
    with pytest.raises(InvalidOption) as refused:
        greet.using(**options)
    assert refused.value.option in options


def test_no_delay_and_a_delay_of_zero_are_both_fine(greet):
    assert greet.using(delay=timedelta()).order("Ada").delay == timedelta()


async def test_a_handle_answers_the_output_in_its_declared_type(greet, gateway):
    handle = greet.enqueue("Ada")
    assert handle.result(timeout=3) == "done"
    assert await handle.aresult(timeout=4) == "done"
    assert handle.status() == await handle.astatus() == "greet is queued"
    assert gateway.asked == [(1, 3), (1, 4)]


def test_a_chain_is_enqueued_like_a_train(gateway):
    registry = Registry()
    registry.attach(gateway)

    def first(number: int) -> str:
        return str(number)

    chain = registry.chain("one", first)
    assert chain.enqueue(4).result() == "done"
    assert gateway.orders[0][1][0].bound.input == b'{"number":4}'
