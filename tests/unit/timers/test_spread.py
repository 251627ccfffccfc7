from __future__ import annotations

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from interlock.timers.spread import spread

MINUTE = timedelta(minutes=1)


def test_fifty_timers_on_ten_servers_do_not_crowd_into_a_second():
    phases = [spread(f"timer-{t}", f"server-{s}", MINUTE) for t in range(50) for s in range(10)]
    buckets = Counter(phase // timedelta(seconds=1) for phase in phases)
    assert max(buckets.values()) <= 3 * len(phases) / 60


def test_control_without_spread_all_crowd_into_one_second():
    buckets = Counter(timedelta(0) // timedelta(seconds=1) for _ in range(500))
    assert max(buckets.values()) > 3 * 500 / 60


def test_it_is_the_same_after_a_restart_and_on_every_machine():
    assert spread("poll", "web-1", MINUTE) == timedelta(seconds=27, microseconds=473840)


def test_another_server_and_another_timer_have_another_phase():
    assert len({spread(t, s, MINUTE) for t, s in [("a", "b"), ("a", "c"), ("b", "a"), ("ab", ""), ("", "ab")]}) == 5


@given(st.text(), st.text(), st.timedeltas(timedelta(milliseconds=1), timedelta(days=36525)))
def test_it_lies_within_the_interval(timer, server, interval):
    assert timedelta(0) <= spread(timer, server, interval) <= interval
