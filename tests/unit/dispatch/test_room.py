from __future__ import annotations

from interlock.dispatch.room import NoHands, room_for


class Hands:
    def __init__(self, free: int, limits=()) -> None:
        self.free, self.trains, self._limits = free, {}, limits

    def limits(self):
        return self._limits


def test_a_worker_is_given_its_free_slots_and_one_batch_less_what_waits_for_it():
    assert room_for(Hands(50), {}, limit=100).total == 100
    assert room_for(Hands(50), {"a": 120}, limit=100).total == 30
    assert room_for(Hands(50), {"a": 100, "b": 50}, limit=100).total == 0


def test_a_cycle_goes_beyond_its_limit_only_into_free_slots():
    assert room_for(Hands(500), {}, limit=100).total == 500
    assert room_for(Hands(0), {}, limit=100).total == 100


def test_no_limit_means_all_that_the_worker_has_room_for():
    assert room_for(Hands(500), {}, limit=None).total == 600
    assert room_for(Hands(500), {"a": 1000}, limit=None).total <= 0


def test_what_waits_of_a_limited_train_beyond_its_limit_takes_no_room_from_the_others():
    room = room_for(Hands(50, [(("solo", "old-solo"), 2)]), {"solo": 90, "old-solo": 60}, limit=100)
    assert room.total == 100
    assert room.most("solo") == room.most("old-solo") == 0
    assert room.most("other") == 100


def test_the_names_of_a_limited_train_share_what_is_left():
    room = room_for(Hands(50, [(("solo", "old-solo"), 3)]), {"old-solo": 1}, limit=100)
    assert room.most("solo") == 2
    room.take("old-solo")
    assert room.most("solo") == 1
    assert room.total == 99


def test_a_server_without_a_worker_knows_no_train():
    assert not NoHands().trains
    assert not list(NoHands().limits())
