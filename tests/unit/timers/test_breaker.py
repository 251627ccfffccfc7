from __future__ import annotations

import pytest

from interlock.timers.breaker import LONGEST_PAUSE, THRESHOLD, Breaker, BreakerState


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told() -> list:
    return []


@pytest.fixture
def breaker(clock, told) -> Breaker:
    return Breaker(emit=told.append, clock=clock)


def opened(breaker: Breaker) -> Breaker:
    for _ in range(THRESHOLD):
        assert breaker.allows()
        breaker.failed()
    return breaker


def test_single_failures_do_not_open_it(breaker):
    for _ in range(10):
        breaker.failed()
        breaker.succeeded()
    assert breaker.state is BreakerState.CLOSED


def test_failures_in_a_row_open_it_and_nobody_asks_for_a_while(breaker, clock):
    opened(breaker)
    assert breaker.state is BreakerState.OPEN
    assert not breaker.allows()
    clock.now += 0.9
    assert not breaker.allows()


def test_after_the_pause_a_single_one_may_try(breaker, clock):
    opened(breaker)
    clock.now += 1
    assert [breaker.allows() for _ in range(3)] == [True, False, False]
    assert breaker.state is BreakerState.HALF_OPEN


def test_a_try_that_succeeds_closes_it(breaker, clock, told):
    opened(breaker)
    clock.now += 1
    assert breaker.allows()
    breaker.succeeded()
    assert breaker.allows()
    assert [event.state for event in told] == ["open", "half_open", "closed"]


def test_a_try_that_fails_opens_it_for_longer_each_time_up_to_a_limit(breaker, clock):
    opened(breaker)
    pauses = []
    for _ in range(8):
        began = clock.now
        while not breaker.allows():
            clock.now += 0.5
        breaker.failed()
        pauses.append(clock.now - began)
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == LONGEST_PAUSE


def test_a_try_that_never_answers_does_not_block_it_for_ever(breaker, clock):
    opened(breaker)
    clock.now += 1
    assert breaker.allows()
    clock.now += 1
    assert breaker.allows()
