from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.manifests.fair_share import choose_fairly
from interlock.model.due import PlannedFire

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def fire(group: int, number: int = 0, *, priority: int = 0, queued: int | None = None) -> PlannedFire:
    last = None if queued is None else NOON + timedelta(minutes=queued)
    manifest: Any = SimpleNamespace(id=number, group_id=group, group_priority=priority, group_last_queued_at=last)
    return PlannedFire(manifest, f"{group}/{number}")


def fires(count: int, group: int, **of_group: Any) -> list[PlannedFire]:
    return [fire(group, number, **of_group) for number in range(count)]


def by_group(chosen: list[PlannedFire]) -> dict[int, int]:
    return dict(Counter(one.manifest.group_id for one in chosen))


def test_what_fits_is_queued_whole():
    due = [*fires(3, 1), *fires(2, 2)]
    assert choose_fairly(due, 5) == (due, [])
    assert choose_fairly(due, None) == (due, [])


def test_a_large_group_takes_what_a_small_one_leaves():
    chosen, deferred = choose_fairly([*fires(5000, 1), *fires(15, 2)], 200)
    assert by_group(chosen) == {1: 185, 2: 15}
    assert by_group(deferred) == {1: 4815}


def test_what_is_left_over_goes_to_higher_priorities_first():
    chosen, _ = choose_fairly([*fires(50, 1, priority=1), *fires(50, 2, priority=9), *fires(2, 3)], 30)
    assert by_group(chosen) == {1: 10, 2: 18, 3: 2}


def test_with_more_groups_than_places_those_that_waited_longest_get_one_each():
    due = [one for group in range(10) for one in fires(3, group, queued=-group if group else None)]
    chosen, _ = choose_fairly(due, 4)
    assert by_group(chosen) == {0: 1, 9: 1, 8: 1, 7: 1}


def test_the_oldest_of_a_group_come_first():
    chosen, deferred = choose_fairly([*fires(4, 1), *fires(4, 2)], 4)
    assert [one.manifest.id for one in chosen] == [0, 1, 0, 1]
    assert [one.manifest.id for one in deferred] == [2, 3, 2, 3]


@given(
    st.dictionaries(st.integers(1, 30), st.tuples(st.integers(1, 40), st.integers(0, 31)), min_size=1, max_size=30),
    st.integers(1, 60),
)
def test_every_place_is_used_nobody_is_lost_and_no_group_gets_less_than_its_share(groups, limit):
    due = [one for group, (count, priority) in groups.items() for one in fires(count, group, priority=priority)]
    chosen, deferred = choose_fairly(due, limit)
    assert len(chosen) == min(limit, len(due))
    assert sorted(one.fire_key for one in [*chosen, *deferred]) == sorted(one.fire_key for one in due)
    share = limit // len(groups)
    got = by_group(chosen)
    assert all(got.get(group, 0) >= min(share, count) for group, (count, _) in groups.items())
    if len(groups) > limit:
        assert max(got.values()) == 1 or len(due) <= limit
