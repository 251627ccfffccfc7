"""The ways to show what `top` sees: a live picture on a terminal, lines elsewhere, JSON for programs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import click

from interlock.cli.output import show_json
from interlock.operate.blockers.words import counted
from interlock.store.gauging import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from interlock.operate.gauges import Gauges


class Screen(Protocol):
    def opened(self, end: Callable[[], None]) -> AbstractContextManager[None]:
        """Show inside the block; `end` is called when the user has seen enough."""
        ...

    def show(self, gauges: Gauges) -> None: ...

    def fail(self, error: str) -> None:
        """A look did not succeed; the next one may."""


def choose_screen(*, terminal: bool, as_json: bool) -> Screen:
    if as_json:
        return JsonLines()
    if not terminal:
        return PlainLines()
    from interlock.cli.top_live import LivePicture

    return LivePicture()


class JsonLines:
    @contextmanager
    def opened(self, end: Callable[[], None]) -> Iterator[None]:  # noqa: ARG002  nobody types
        yield

    def show(self, gauges: Gauges) -> None:
        show_json(record(gauges))

    def fail(self, error: str) -> None:
        click.echo(f"interlock: {error}", err=True)


class PlainLines:
    @contextmanager
    def opened(self, end: Callable[[], None]) -> Iterator[None]:  # noqa: ARG002  nobody types
        yield

    def show(self, gauges: Gauges) -> None:
        click.echo(line(gauges))

    def fail(self, error: str) -> None:
        click.echo(f"interlock: {error}", err=True)


def line(gauges: Gauges) -> str:
    """Everything that matters in one line."""
    levels, fleet = gauges.levels, [member for member in gauges.fleet if member.leased]
    parts = {
        "ready": levels.ready,
        "delayed": levels.delayed,
        "dispatched": levels.pending,
        "running": levels.in_progress,
        "completed/min": levels.completed,
        "failed/min": levels.failed,
        "dead letters": levels.dead_letters,
        "servers": len(fleet),
        "slots": sum(member.slots for member in fleet),
    }
    said = "  ".join(f"{name} {counted(value, MOST)}" for name, value in parts.items())
    return f"{levels.now:%H:%M:%S}  {said}"


def record(gauges: Gauges) -> dict[str, Any]:
    return {
        **asdict(gauges.levels),
        "counts_stop_at": MOST,
        "lanes": [_renamed(asdict(lane), group_name="group", oldest="oldest_seconds") for lane in gauges.lanes],
        "groups": [asdict(group) for group in gauges.groups],
        "executions": [_renamed({**asdict(run), "id": str(run.id)}, age="age_seconds") for run in gauges.running],
        "servers": [_renamed(asdict(member), heartbeat_age="heartbeat_age_seconds") for member in gauges.fleet],
    }


def _renamed(values: dict[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
