from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from interlock.model.schedule import Dependent, Dormant, Manual, cron, every, once
from interlock.model.schedule_text import describe


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (every(minutes=5), "every 5 minutes"),
        (every(hours=1), "every hour"),
        (every(hours=1, minutes=30), "every 1 hour 30 minutes"),
        (every(days=14), "every 2 weeks"),
        (every(milliseconds=1.5), "every 1 millisecond 500 microseconds"),
        (cron("0 3 * * *", tz="Europe/Berlin"), "cron 0 3 * * * (Europe/Berlin)"),
        (once(at=datetime(2030, 1, 1, 9, tzinfo=UTC)), "once at 2030-01-01 09:00:00 UTC"),
        (once(after=timedelta(hours=1)), "once, 1 hour after it was declared"),
        (once(after=timedelta(0)), "once, 0 seconds after it was declared"),
        (Dependent("extract"), "after extract"),
        (Dormant("extract"), "when extract activates it"),
        (Manual(), "only when triggered"),
    ],
)
def test_a_schedule_reads_as_a_person_would_say_it(schedule, words: str):
    assert describe(schedule) == words
