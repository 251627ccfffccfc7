from __future__ import annotations

import re
from datetime import timedelta

import pytest

from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption
from interlock.outbox.declare import Declaring
from interlock.outbox.emitter import EmitterOptions, Emitters, expression_of
from interlock.outbox.settings import OutboxSettings


async def send(message, context): ...


def plain(message): ...


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("order.*", "order.paid", True),
        ("order.*", "orders.paid", False),
        ("order.paid", "order.paid", True),
        ("order.paid", "orderxpaid", False),
        ("*.paid", "order.paid", True),
        ("*", "anything at all", True),
        ("a+b(c)", "a+b(c)", True),
        ("a+b(c)", "aab(c)", False),
    ],
)
def test_a_pattern_means_its_text_and_any_text_for_a_star(pattern, topic, matches):
    assert bool(re.search(expression_of(pattern), topic)) is matches


def declared(*patterns: str, **options):
    emitters = Emitters()
    for pattern in patterns:
        emitters.declare(pattern, send, EmitterOptions(**options))
    return emitters


def test_exact_topics_come_before_patterns_and_long_patterns_before_short_ones():
    emitters = declared("*", "order.*", "order.paid", "order.paid.*")
    patterns = [each.pattern for each in emitters.resolved(OutboxSettings())]
    assert patterns == ["order.paid", "order.paid.*", "order.*", "*"]


def test_what_an_emitter_does_not_say_the_settings_say():
    [emitter] = declared("a", max_attempts=3).resolved(OutboxSettings(outbox_max_crashes=7))
    assert (emitter.max_attempts, emitter.max_crashes, emitter.timeout) == (3, 7, timedelta(seconds=10))
    assert (emitter.is_async, emitter.takes_context) == (True, True)


def test_a_plain_function_of_one_argument_is_called_so():
    emitters = Emitters()
    emitters.declare("a", plain, EmitterOptions())
    [emitter] = emitters.resolved(OutboxSettings())
    assert (emitter.is_async, emitter.takes_context) == (False, False)


def test_a_second_emitter_of_a_pattern_a_late_one_and_wrong_options_are_refused():
    emitters = declared("a")
    with pytest.raises(DuplicateName):
        emitters.declare("a", send, EmitterOptions())
    emitters.freeze()
    with pytest.raises(DeclarationAfterStart):
        emitters.declare("b", send, EmitterOptions())
    with pytest.raises(InvalidOption):
        EmitterOptions(on_dead="explode")
    with pytest.raises(InvalidOption):
        EmitterOptions(max_attempts=0)
    with pytest.raises(InvalidOption):
        declared("a", timeout=timedelta(seconds=60)).resolved(OutboxSettings())


@pytest.mark.parametrize(
    "function", ["no function", None, lambda: None, lambda _one, _two, _three: None, lambda *, message: message]
)
def test_what_cannot_be_called_with_a_message_is_refused_where_it_is_declared(function):
    with pytest.raises(InvalidOption, match="one argument"):
        Emitters().declare("a", function, EmitterOptions())


def generator(_message):
    yield


async def async_generator(_message):
    yield


class CallableGenerator:
    def __call__(self, _message):
        yield


@pytest.mark.parametrize("function", [generator, async_generator, CallableGenerator()])
def test_a_generator_is_refused_because_a_call_would_deliver_nothing_and_count_as_a_delivery(function):
    with pytest.raises(InvalidOption, match="generator"):
        Emitters().declare("a", function, EmitterOptions())


@pytest.mark.parametrize(
    ("function", "takes_context"),
    [
        (lambda _message: None, False),
        (lambda _message, _context: None, True),
        (lambda _message, _given=None: None, True),
        (lambda *_arguments: None, True),
    ],
)
def test_the_context_is_given_to_those_who_can_take_it(function, takes_context):
    emitters = Emitters()
    emitters.declare("a", function, EmitterOptions())
    [emitter] = emitters.resolved(OutboxSettings())
    assert emitter.takes_context is takes_context


@pytest.mark.parametrize(
    "wrong",
    [{"topic": plain}, {"timeout": "5"}, {"timeout": -1}, {"backoff": 5}, {"payload": "Paid"}, {"concurrency": "many"}],
)
def test_wrong_options_are_refused_by_the_decorator(wrong):
    options = {"topic": "a", **wrong}
    with pytest.raises(InvalidOption):
        Declaring().emitter(options.pop("topic"), **options)


@pytest.mark.parametrize("misspelt", ["batch", "max_attempt"])
def test_an_option_that_does_not_exist_is_refused_by_the_decorators(misspelt):
    for decorator in (Declaring().emitter, Declaring().batch_emitter):
        with pytest.raises(InvalidOption, match=misspelt):
            decorator("a", **{misspelt: 3})


def test_delays_grow_to_a_limit_and_are_spread():
    [emitter] = declared("a").resolved(OutboxSettings())
    firsts = {emitter.delay_after(1).total_seconds() for _ in range(50)}
    assert len(firsts) > 40
    assert all(0.8 <= first <= 1.2 for first in firsts)
    assert timedelta(minutes=4) <= emitter.delay_after(60) <= timedelta(minutes=6)
