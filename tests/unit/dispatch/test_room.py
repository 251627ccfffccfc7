from __future__ import annotations

from interlock.dispatch.room import Ahead, NoHands, claimable, room_by_count, room_by_estimate


class Hands:
    def __init__(self, free: int, limits=()) -> None:
        self.free, self.trains, self._limits, self.claimed = free, {}, limits, 0

    def limits(self):
        return self._limits


def test_a_worker_is_given_its_free_slots_and_one_batch_less_what_waits_for_it():
    assert room_by_count(Hands(50), {}, limit=100).total == 100
    assert room_by_count(Hands(50), {"a": 120}, limit=100).total == 30
    assert room_by_count(Hands(50), {"a": 100, "b": 50}, limit=100).total == 0


def test_a_cycle_goes_beyond_its_limit_only_into_free_slots():
    assert room_by_count(Hands(500), {}, limit=100).total == 500
    assert room_by_count(Hands(0), {}, limit=100).total == 100


def test_no_limit_means_all_that_the_worker_has_room_by_count():
    assert room_by_count(Hands(500), {}, limit=None).total == 600
    assert room_by_count(Hands(500), {"a": 1000}, limit=None).total <= 0


def test_what_waits_of_a_limited_train_beyond_its_limit_takes_no_room_from_the_others():
    room = room_by_count(Hands(50, [(("solo", "old-solo"), 2)]), {"solo": 90, "old-solo": 60}, limit=100)
    assert room.total == 100
    assert room.most("solo") == room.most("old-solo") == 0
    assert room.most("other") == 100


def test_the_names_of_a_limited_train_share_what_is_left():
    room = room_by_count(Hands(50, [(("solo", "old-solo"), 3)]), {"old-solo": 1}, limit=100)
    assert room.most("solo") == 2
    room.take("old-solo")
    assert room.most("solo") == 1
    assert room.total == 99


def test_a_server_without_a_worker_knows_no_train():
    assert not NoHands().trains
    assert not list(NoHands().limits())


def test_an_estimate_that_finds_room_needs_no_count():
    assert room_by_estimate(Hands(50), 120, limit=100).total == 30
    assert room_by_estimate(Hands(50), 150, limit=100) is None
    assert room_by_estimate(Hands(50, [(("solo",), 1)]), 0, limit=100) is None


def test_what_is_ahead_is_what_was_dispatched_here_less_what_was_claimed_here():
    hands = Hands(50)
    ahead = Ahead(hands)
    ahead.dispatched(10)
    hands.claimed += 4
    assert ahead.unclaimed == 6
    hands.claimed += 20
    assert ahead.unclaimed == 0


def test_jobs_claimed_from_others_do_not_let_this_server_run_further_ahead_later():
    hands = Hands(50)
    ahead = Ahead(hands)
    hands.claimed += 100
    assert ahead.unclaimed == 0
    ahead.dispatched(10)
    assert ahead.unclaimed == 10


def test_a_count_puts_the_estimate_right():
    hands = Hands(50)
    ahead = Ahead(hands)
    ahead.dispatched(150)
    hands.claimed += 1
    ahead.counted(3)
    assert ahead.unclaimed == 3


def test_a_worker_has_enough_when_more_waits_than_its_free_slots_and_half_a_batch():
    hands = Hands(10)
    ahead = Ahead(hands)
    ahead.dispatched(51)
    assert ahead.is_enough(100)
    hands.claimed += 1
    assert not ahead.is_enough(100)
    ahead.dispatched(20)
    hands.free = 70
    assert not ahead.is_enough(100)  # others have claimed some of them: the slots are free all the same


def test_what_a_limited_train_cannot_run_is_not_enough_for_anybody():
    assert claimable(Hands(10, [(("solo", "old-solo"), 2)]), {"solo": 90, "old-solo": 60, "work": 5}) == 7
