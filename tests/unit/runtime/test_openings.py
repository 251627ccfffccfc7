"""Who is the last to leave."""

from __future__ import annotations

import os

from interlock.runtime.openings import Openings


def test_the_last_who_leaves_closes():
    openings = Openings()
    openings.enter()
    openings.enter()
    assert [openings.leave(), openings.leave()] == [False, True]


def test_what_was_opened_on_first_use_is_closed_by_whoever_says_so():
    openings = Openings()
    assert [openings.leave(), openings.leave()] == [True, True]
    openings.enter()
    assert openings.leave()


def test_a_forked_child_waits_for_nobody_of_its_parent(monkeypatch):
    openings, parent = Openings(), os.getpid()
    openings.enter()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    openings.enter()
    assert openings.leave()
