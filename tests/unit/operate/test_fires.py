"""The coming fires as people read them: in their zone, around exclusions, across clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interlock.model.exclusion import exclude
from interlock.model.reading import ManifestPlan
from interlock.model.schedule import cron, every, once
from interlock.model.schedule_json import encode_exclusions, encode_schedule
from interlock.operate.draw import FORMATS, as_dot, as_mermaid, as_text
from interlock.operate.fires import coming_fires

FRIDAY = datetime(2030, 3, 29, 12, tzinfo=UTC)


def plan(schedule, planned_at, *, name="m", now=FRIDAY, exclusions=(), tz="UTC", enabled=True, offset=timedelta(0)):
    return ManifestPlan(
        external_id=name,
        enabled=enabled,
        train="t",
        group="default",
        parent=None,
        schedule_kind="every",
        schedule=encode_schedule(schedule),
        time_zone=tz,
        exclusions=encode_exclusions(exclusions),
        planned_at=planned_at,
        planned_offset=offset,
        group_enabled=True,
        paused=False,
        dead_letter_id=None,
        now=now,
    )


def test_excluded_days_are_named_once_and_do_not_count():
    daily = plan(every(hours=6), FRIDAY, exclusions=[exclude.weekdays("sat", "sun")])
    found = coming_fires([daily], 4)
    assert [one.at for one in found if one.fires] == [
        FRIDAY,
        FRIDAY + timedelta(hours=6),
        datetime(2030, 4, 1, 0, tzinfo=UTC),
        datetime(2030, 4, 1, 6, tzinfo=UTC),
    ]
    [excluded] = [one for one in found if not one.fires]
    assert (excluded.at, excluded.marks) == (datetime(2030, 3, 30, tzinfo=UTC), ("excluded: sat, sun",))


def test_the_gap_in_spring_and_the_hour_that_comes_twice_are_marked():
    spring = plan(cron("30 2 * * *", tz="Europe/Berlin"), datetime(2030, 3, 30, 1, 30, tzinfo=UTC))
    _, gap, after = coming_fires([spring], 3)
    assert gap.local.isoformat() == "2030-03-31T03:00:00+02:00"
    assert gap.marks == ("clocks go forward: the times in the gap run now",)
    assert (after.local.hour, after.marks) == (2, ())
    autumn = plan(cron("30 2 * * *", tz="Europe/Berlin"), datetime(2030, 10, 27, 0, 30, tzinfo=UTC))
    [twice, _] = coming_fires([autumn], 2)
    assert twice.marks == ("clocks go back: this hour comes twice",)


def test_what_is_overdue_or_delayed_or_off_says_so_and_missed_fires_are_left_out():
    late = plan(every(hours=1), FRIDAY - timedelta(hours=5), offset=timedelta(seconds=30), enabled=False)
    first, second = coming_fires([late], 2)
    assert first.marks == ("overdue", "delayed by 30 s of variance", "manifest disabled")
    assert second.at > FRIDAY


def test_several_manifests_are_merged_by_time_and_a_single_run_ends():
    single = plan(once(at=FRIDAY + timedelta(minutes=30)), FRIDAY + timedelta(minutes=30), name="single")
    hourly = plan(every(hours=1), FRIDAY, name="hourly")
    assert [one.external_id for one in coming_fires([single, hourly], 3)] == ["hourly", "single", "hourly"]
    assert len(coming_fires([single], 10)) == 1


def test_what_cannot_be_read_or_is_not_planned_has_no_fires():
    assert coming_fires([plan(every(hours=1), None)], 3) == []
    unreadable = plan(every(hours=1), FRIDAY)
    object.__setattr__(unreadable, "schedule", {"kind": "new"})
    assert coming_fires([unreadable], 3) == []


def node(name: str, parent: str | None = None, *, kind: str = "dependent", enabled: bool = True) -> ManifestPlan:
    found = plan(every(hours=1), None, name=name, enabled=enabled)
    object.__setattr__(found, "parent", parent)
    object.__setattr__(found, "schedule_kind", kind)
    return found


GRAPH = [node("a"), node("b", "a"), node("c", "b", kind="dormant"), node("d", "a", enabled=False), node("lost", "gone")]


def test_the_graph_as_text_is_a_tree_per_root():
    assert as_text(GRAPH).splitlines() == [
        "a",
        "├── b",
        "│   └── c (dormant)",
        "└── d (disabled)",
        "lost",
    ]


def test_the_graph_for_tools_escapes_what_they_would_read_as_their_own():
    odd = [node('say "hi" <b>'), node("x", 'say "hi" <b>', kind="dormant")]
    assert '["say &quot;hi&quot; &lt;b&gt;"]' in as_mermaid(odd)
    assert "m0 -.-> m1" in as_mermaid(odd)
    assert '"say \\"hi\\" <b>" -> "x" [style=dashed];' in as_dot(odd)


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_graph_can_be_drawn(form):
    assert isinstance(FORMATS[form]([]), str)
