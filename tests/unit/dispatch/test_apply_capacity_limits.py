from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dispatch.apply_capacity_limits import Held, apply_capacity_limits
from interlock.dispatch.load_dispatch_capacity import Capacity
from interlock.dispatch.room import Room
from interlock.model.work import Candidate

A, B, C = 1, 2, 3
PLENTY = 1000


def queued(group: int, *, first: int = 1, count: int, train: str = "work") -> list[Candidate]:
    return [Candidate(100 * group + number, group, train, 0) for number in range(first, first + count)]


def names(candidates) -> list[str]:
    return [f"{'ABC'[candidate.group_id - 1]}-{candidate.id % 100}" for candidate in candidates]


def judge(candidates, room=None, **capacity):
    verdict = apply_capacity_limits(candidates, Capacity(lanes=(), **capacity), room or Room(PLENTY))
    return names(verdict.chosen), {names([one])[0]: reason for one, reason in verdict.skipped}


def test_a_full_group_is_skipped_and_a_full_whole_stops_the_rest():
    """Five in all, three of each group: A has the higher priority, so B gets what A leaves."""
    chosen, skipped = judge([*queued(A, count=4), *queued(B, count=4)], free=5, free_by_group={A: 3, B: 3})
    assert chosen == ["A-1", "A-2", "A-3", "B-1", "B-2"]
    assert skipped == {"A-4": Held.GROUP_CAP, "B-3": Held.GLOBAL_CAP}


def test_without_caps_everything_goes_in_order():
    chosen, skipped = judge([*queued(A, count=2), *queued(B, count=2)])
    assert (chosen, skipped) == (["A-1", "A-2", "B-1", "B-2"], {})


def test_an_excluded_train_is_outside_the_global_cap_and_not_held_by_its_stop():
    candidates = [*queued(A, count=2), *queued(B, count=2, train="cleanup"), *queued(A, first=3, count=1)]
    chosen, skipped = judge(candidates, free=1, excluded=frozenset({"cleanup"}))
    assert chosen == ["A-1", "B-1", "B-2"]
    assert skipped == {"A-2": Held.GLOBAL_CAP}


def test_an_excluded_train_counts_in_its_group():
    candidates = [*queued(A, count=1, train="cleanup"), *queued(A, first=2, count=2)]
    chosen, skipped = judge(candidates, free=5, free_by_group={A: 2}, excluded=frozenset({"cleanup"}))
    assert chosen == ["A-1", "A-2"]
    assert skipped == {"A-3": Held.GROUP_CAP}


def test_an_overdrawn_cap_lets_nobody_through():
    assert judge(queued(A, count=2), free_by_group={A: -4})[0] == []
    assert judge(queued(A, count=2), free=-4)[0] == []


def test_nothing_goes_beyond_what_the_worker_can_take():
    chosen, skipped = judge(queued(A, count=3), room=Room(2))
    assert (chosen, skipped) == (["A-1", "A-2"], {"A-3": Held.NO_WORKER})


def test_a_train_with_a_limit_of_its_own_holds_up_no_other():
    room = Room(10)
    room.limit(("solo", "solo-before"), 1)
    candidates = [
        *queued(A, count=1, train="solo"),
        *queued(A, first=2, count=1, train="solo-before"),
        *queued(A, first=3, count=1),
    ]
    chosen, skipped = judge(candidates, room=room)
    assert (chosen, skipped) == (["A-1", "A-3"], {"A-2": Held.NO_WORKER})


@given(
    groups=st.lists(st.sampled_from([A, B, C]), max_size=30),
    free=st.none() | st.integers(-2, 10),
    by_group=st.dictionaries(st.sampled_from([A, B, C]), st.integers(-2, 6)),
    room=st.integers(0, 12),
)
def test_no_cap_is_ever_exceeded_and_no_free_place_is_left_to_a_candidate_in_vain(groups, free, by_group, room):
    candidates = [Candidate(number, group, "work", 0) for number, group in enumerate(groups)]
    verdict = apply_capacity_limits(candidates, Capacity(lanes=(), free=free, free_by_group=by_group), Room(room))
    taken = {group: sum(one.group_id == group for one in verdict.chosen) for group in (A, B, C)}
    assert all(taken[group] <= max(most, 0) for group, most in by_group.items())
    assert len(verdict.chosen) <= min(room, max(free, 0) if free is not None else room)
    if len(verdict.chosen) < room and (free is None or len(verdict.chosen) < free):
        left = [one for one in candidates if one not in verdict.chosen]
        assert all(one.group_id in by_group and taken[one.group_id] >= by_group[one.group_id] for one in left)


@pytest.mark.parametrize("free", [None, 3])
def test_the_order_of_the_candidates_is_kept(free):
    candidates = [*queued(B, count=2), *queued(A, count=2)]
    assert judge(candidates, free=free)[0] == names(candidates)[: free or 4]
