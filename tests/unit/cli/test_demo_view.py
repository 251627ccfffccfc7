"""The picture of the demo fits its terminal: what has just happened is on it, however low or narrow it is."""

from __future__ import annotations

import io
from datetime import timedelta
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.live import Live

from interlock.cli.demo.view import LINES, Picture

SERVER = SimpleNamespace(
    profile=SimpleNamespace(name="server-1"), state="alive", heartbeat_age=timedelta(seconds=1), ended_at=None
)
TRAIN = SimpleNamespace(train="import legacy file", waiting=1, running=2, completed=3, failed=4)


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [
        (200, 50, ["servers", "trains", "\u2503", f"number {21 - LINES} "]),
        (80, 24, ["servers", "trains", "number 14 "]),
        (40, 15, ["servers", "number 14 "]),
        (20, 5, ["number 16 "]),
        (20, 1, []),
    ],
)
def test_the_latest_news_are_seen(width, height, shown):
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        picture = Picture(live)
        picture.draw([SERVER] * 4, [TRAIN] * 7)
        for number in range(1, 20):
            picture.say(f"number {number} ")
        console.file.truncate(0)
        picture.say("number 20 ")
        frame = console.file.getvalue()
    assert [word for word in ["number 20", *shown] if word not in frame] == []
    assert frame.count("\n") < height
