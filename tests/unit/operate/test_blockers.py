"""The parts of blockers that need no database."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from interlock import cron, every, once
from interlock.operate.blockers import BLOCKERS, Code
from interlock.operate.blockers.blocker import command
from interlock.operate.blockers.plans import previous_fire
from interlock.operate.blockers.words import ahead, at, counted, span
from interlock.operate.explain import parse_subject
from tests.harness.processes import ROOT

NOON = datetime(2030, 5, 6, 12, 0, tzinfo=UTC)


def test_the_page_lists_every_blocker_in_the_order_in_which_they_are_told():
    page = (ROOT / "docs" / "reference" / "blockers.md").read_text("utf-8")
    assert re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE) == list(Code)
    assert list(BLOCKERS) == list(Code)


@pytest.mark.parametrize(
    ("schedule", "before", "expected"),
    [
        (every(hours=1), NOON, NOON - timedelta(hours=1)),
        (cron("0 * * * *"), NOON, NOON - timedelta(hours=1)),
        (cron("*/5 * * * * *"), NOON, NOON - timedelta(seconds=5)),
        (cron("0 3 * * *"), NOON, NOON.replace(hour=3)),
        (cron("0 0 29 2 *"), NOON, datetime(2028, 2, 29, tzinfo=UTC)),
        (once(at=NOON), NOON, None),
    ],
)
def test_the_fire_before_another_one_is_found(schedule, before, expected):
    assert previous_fire(schedule, before) == expected


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(0), "0 ms"),
        (timedelta(milliseconds=250), "250 ms"),
        (timedelta(seconds=59.6), "1 min"),
        (timedelta(hours=2, minutes=5, seconds=7), "2 h 5 min"),
        (-timedelta(days=3, seconds=1), "3 d 1 s"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(duration, words):
    assert span(duration) == words


def test_a_moment_is_told_in_utc_with_its_distance():
    assert at(NOON.astimezone()) == "2030-05-06 12:00:00Z"
    assert ahead(NOON, NOON - timedelta(minutes=5)) == "2030-05-06 12:00:00Z (in 5 min)"
    assert ahead(NOON, NOON + timedelta(minutes=5)) == "2030-05-06 12:00:00Z (5 min ago)"


def test_a_count_that_stopped_says_so():
    assert [counted(number, 1000) for number in (0, 999, 1000, 1500)] == ["0", "999", "1000+", "1000+"]


def test_a_command_can_be_typed_whatever_the_name():
    assert command("manifests", "trigger", "a b; rm -rf $HOME") == "interlock manifests trigger 'a b; rm -rf $HOME'"


@pytest.mark.parametrize(
    ("subject", "parsed"),
    [
        ("execution:42", ("execution", "42")),
        ("timer:shop.jobs.poll", ("timer", "shop.jobs.poll")),
        ("nightly", ("manifest", "nightly")),
        ("tenant:7:nightly", ("manifest", "tenant:7:nightly")),
        ("manifest:entry:42", ("manifest", "entry:42")),
    ],
)
def test_what_has_no_known_kind_in_front_is_a_manifest(subject, parsed):
    assert parse_subject(subject) == parsed
