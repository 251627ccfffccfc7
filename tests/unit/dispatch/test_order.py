from __future__ import annotations

from datetime import timedelta

import pytest

from interlock.dispatch.order import as_entries
from interlock.errors import PayloadTooLarge
from interlock.model.execution import Policy
from interlock.trains.gateway import Order
from interlock.trains.options import Backoff
from interlock.trains.registry import Registry

SETTINGS = Policy(3, 3, timedelta(minutes=5), timedelta(hours=1), 2.0, timedelta(minutes=20))


@pytest.fixture
def registry():
    return Registry()


def entry(order: Order, most: int = 1000):
    [one] = as_entries([order], SETTINGS, max_input_bytes=most)
    return one


def test_what_nobody_says_is_said_by_the_settings(registry):
    @registry.train
    def plain(name: str) -> None: ...

    found = entry(Order(plain.bind("Ada")))
    assert found.terms.policy == SETTINGS
    assert (found.terms.group, found.terms.priority, found.input) == ("default", None, '{"name":"Ada"}')


def test_the_train_says_more_than_the_settings_and_the_caller_more_than_the_train(registry):
    retry = Backoff(timedelta(seconds=1), factor=3.0, max_delay=timedelta(seconds=9))

    @registry.train(
        group="etl", priority=7, max_attempts=9, timeout=timedelta(seconds=5), retry=retry, aliases=["before"]
    )
    def chosen() -> None: ...

    terms = entry(Order(chosen.bind())).terms
    policy = Policy(9, 3, timedelta(seconds=1), timedelta(seconds=9), 3.0, timedelta(seconds=5))
    assert terms == ("chosen", ("before",), "etl", 7, policy)
    said = entry(Order(chosen.bind(), group="other", priority=0, delay=timedelta(1), key="k"))
    assert (said.terms.group, said.priority, said.delay, said.key) == ("other", 0, timedelta(1), "k")


def test_orders_of_one_train_in_one_group_share_their_terms(registry):
    @registry.train
    def plain() -> None: ...

    orders = [Order(plain.bind()), Order(plain.bind()), Order(plain.bind(), group="other")]
    first, second, third = as_entries(orders, SETTINGS, max_input_bytes=1000)
    assert first.terms is second.terms
    assert third.terms is not first.terms


def test_an_input_beyond_the_limit_is_refused_and_one_at_the_limit_is_not(registry):
    @registry.train
    def plain(text: str) -> None: ...

    order = Order(plain.bind("x" * 50))
    size = len(order.bound.input)
    assert entry(order, size)
    with pytest.raises(PayloadTooLarge) as refused:
        entry(order, size - 1)
    assert (refused.value.size, refused.value.limit) == (size, size - 1)
