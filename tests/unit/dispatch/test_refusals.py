"""What cannot be meant is refused at the call, with what was found and what to do, before any database is asked."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from interlock import Cancel, Interlock, Retry, Snooze
from interlock.errors import InvalidOption, UnknownTrain
from interlock.trains.handle import Handle

app = Interlock("postgresql://nobody@127.0.0.1:1/nothing")


@app.train
async def greet(name: str) -> str:
    return name


IDS = ["7", 1.5, True, None, 2**63]
RUNS = [None, greet, greet.bind("Ada"), ["greet"], [greet], [greet.using(priority=3)], [greet.bind("Ada"), None]]
TIMEOUTS = [-1, "5", math.nan, True, timedelta(seconds=-1)]


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: type(runs).__name__)
async def test_many_runs_are_bound_trains_or_orders(runs):
    with pytest.raises(InvalidOption, match=r"runs=.*train\.bind"):
        await app.aenqueue_many(runs)


async def test_a_train_of_another_app_is_refused_because_no_server_of_this_one_has_it():
    other = Interlock("postgresql://nobody@127.0.0.1:1/nothing")

    @other.train(name="greet")
    async def of_the_same_name(name: str) -> None: ...

    @other.train
    async def elsewhere() -> None: ...

    for run in (of_the_same_name.bind("Ada"), elsewhere.bind(), elsewhere.using(priority=3).order()):
        with pytest.raises(UnknownTrain, match="known: greet"):
            await app.aenqueue_many([greet.bind("Ada"), run])


@pytest.mark.parametrize("patience", TIMEOUTS, ids=repr)
async def test_a_wait_is_bounded_by_seconds_or_not_at_all(patience):
    handle = Handle(1, greet, app.work)
    for wait in (handle.result, handle.aresult):
        with pytest.raises(InvalidOption, match=r"timeout=.*seconds"):
            await wait(patience)


@pytest.mark.parametrize("found", IDS, ids=repr)
async def test_a_number_is_a_whole_number_and_never_cut_to_one(found):
    desk = app.dead_letters
    calls = [app.acancel_entry, app.acancel_execution, app.arerun, desk.arequeue, desk.aacknowledge, desk.aget]
    for call in calls:
        with pytest.raises(InvalidOption, match="such as 42"):
            await call(found)


@pytest.mark.parametrize("name", [5, None, "", "a\0b", " x"], ids=repr)
async def test_a_name_is_a_text_that_can_be_read(name):
    for call in (app.acancel, app.acancel_group, app.atrigger, app.aenable, app.adisable, app.apause, app.aresume):
        with pytest.raises(InvalidOption, match="printable"):
            await call(name)


@pytest.mark.parametrize("remark", [5, "a\0b", "\ud800"], ids=ascii)
async def test_who_acts_and_why_is_said_in_text_that_can_be_kept(remark):
    for said in ({"actor": remark}, {"note": remark}):
        with pytest.raises(InvalidOption, match="a text without NUL"):
            await app.acancel_group("default", **said)


@pytest.mark.parametrize("limit", [0, -1, "x", True, 2**40], ids=repr)
async def test_a_list_has_a_length(limit):
    with pytest.raises(InvalidOption, match="limit="):
        await app.dead_letters.alist(limit=limit)


def test_no_wait_is_longer_than_dates_last():
    for say in (
        lambda: greet.using(delay=timedelta.max),
        lambda: Retry(timedelta.max),
        lambda: Snooze(timedelta.max),
        lambda: app.train(name="slow", timeout=timedelta.max)(lambda: None),
    ):
        with pytest.raises(InvalidOption, match="at most 36,500 days"):
            say()


def test_no_count_is_larger_than_its_column():
    with pytest.raises(InvalidOption, match="from 1 to 2,147,483,647"):
        app.train(name="stubborn", max_attempts=10**12)(lambda: None)


@pytest.mark.parametrize("reason", [None, 5, b"x"], ids=repr)
def test_a_reason_is_a_text(reason):
    for say in (lambda: Cancel(reason), lambda: Retry(timedelta(1), reason), lambda: Snooze(timedelta(1), reason)):
        with pytest.raises(InvalidOption, match="reason="):
            say()
