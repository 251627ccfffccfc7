"""What may be asked of a lock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from interlock import Interlock
from interlock.errors import InvalidOption
from interlock.locks.options import checked_wish

USUAL = timedelta(seconds=30)


@pytest.mark.parametrize("misspelt", ["tll", "usual_ttl", "waits"])
async def test_an_option_that_does_not_exist_is_refused_at_the_call(misspelt):
    locks = Interlock().locks
    with pytest.raises(InvalidOption, match=misspelt):
        locks.hold("report", **{misspelt: USUAL})
    with pytest.raises(InvalidOption, match=misspelt):
        await locks.atry_hold("report", **{misspelt: USUAL})


def test_a_hold_has_the_usual_ttl_unless_it_names_one():
    assert checked_wish("report", 1, USUAL).ttl == checked_wish("report", 1, USUAL, ttl=None).ttl == USUAL
    assert checked_wish("report", 1, USUAL, ttl=timedelta(seconds=5)).ttl == timedelta(seconds=5)
