from __future__ import annotations

import gc
import logging
import threading

import pytest

from interlock.observe.bus import Bus
from interlock.observe.events import Event, ManifestsSkippedCycle, MarkersRepaired

REPAIRED = MarkersRepaired(count=1)
SKIPPED = ManifestsSkippedCycle()


def refuse(event):
    raise ValueError(event)


def test_a_subscriber_gets_the_kinds_it_asked_for_in_order():
    bus, everything, some = Bus(), [], []
    bus.subscribe(everything.append)
    bus.subscribe(some.append, kinds=(MarkersRepaired,))
    for event in (REPAIRED, SKIPPED, REPAIRED):
        bus.emit(event)
    assert everything == [REPAIRED, SKIPPED, REPAIRED]
    assert some == [REPAIRED, REPAIRED]


def test_a_subscription_made_after_the_first_event_of_a_kind_takes_effect():
    bus, seen = Bus(), []
    bus.emit(REPAIRED)
    unsubscribe = bus.subscribe(seen.append)
    bus.emit(REPAIRED)
    unsubscribe()
    unsubscribe()
    bus.emit(REPAIRED)
    assert seen == [REPAIRED]


def test_one_of_two_equal_subscriptions_ends_alone():
    bus, seen = Bus(), []
    bus.subscribe(seen.append)
    bus.subscribe(seen.append)()
    bus.emit(SKIPPED)
    assert seen == [SKIPPED]


def test_a_subscriber_that_raises_harms_nobody_and_is_reported_once(caplog):
    bus, seen = Bus(), []
    bus.subscribe(refuse)
    bus.subscribe(seen.append)
    for _ in range(5):
        bus.emit(REPAIRED)
    assert seen == [REPAIRED] * 5
    assert [record.name for record in caplog.records] == ["interlock.observe"]
    assert "refuse" in caplog.text
    assert "ValueError" in caplog.text


def test_a_subscriber_that_emits_for_ever_does_not_take_the_emitter_down(caplog):
    gc.collect()  # what earlier tests left cannot be finalized at the end of the stack
    bus = Bus()
    bus.subscribe(bus.emit)
    bus.emit(REPAIRED)
    assert {record.name for record in caplog.records} == {"interlock.observe"}


def test_a_report_that_makes_a_log_handler_emit_again_ends(caplog):
    bus = Bus()
    bus.subscribe(refuse)

    class Emits(logging.Handler):
        def emit(self, _):
            bus.emit(REPAIRED)

    handler = Emits()
    logging.getLogger("interlock.observe").addHandler(handler)
    try:
        bus.emit(REPAIRED)
    finally:
        logging.getLogger("interlock.observe").removeHandler(handler)
    assert len(caplog.records) == 1


def test_an_interrupt_in_a_subscriber_is_not_swallowed():
    bus = Bus()

    def interrupt(_):
        raise KeyboardInterrupt

    bus.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        bus.emit(REPAIRED)


def test_an_event_that_nobody_asked_for_is_looked_up_once(monkeypatch):
    bus, looked_up = Bus(), []
    look_up = bus._look_up
    monkeypatch.setattr(bus, "_look_up", lambda kind: looked_up.append(kind) or look_up(kind))
    bus.subscribe(refuse, kinds=(ManifestsSkippedCycle,))
    for _ in range(100):
        bus.emit(REPAIRED)
    assert looked_up == [MarkersRepaired]


def test_no_subscription_is_lost_when_threads_subscribe_at_once():
    bus, seen, ready = Bus(), [], threading.Barrier(8)

    def subscribe():
        ready.wait()
        for _ in range(50):
            bus.subscribe(seen.append)
            bus.emit(SKIPPED)

    threads = [threading.Thread(target=subscribe) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.clear()
    bus.emit(SKIPPED)
    assert len(seen) == 400


def test_an_event_is_a_value():
    assert MarkersRepaired(count=1) == REPAIRED
    assert MarkersRepaired(count=2) != REPAIRED
    assert {REPAIRED, MarkersRepaired(count=1)} == {REPAIRED}
    assert repr(REPAIRED) == "MarkersRepaired(count=1)"
    assert isinstance(REPAIRED, Event)
    with pytest.raises(AttributeError):
        REPAIRED.count = 2
