from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.client import in_namespace
from interlock.cli.options import NounGroup, json_option
from interlock.cli.output import show_json, show_table
from interlock.errors import InvalidSchedule, LockServiceUnavailable
from interlock.model.schedule_json import decode_schedule
from interlock.model.schedule_text import describe

if TYPE_CHECKING:
    from interlock.model.lease import Holder
    from interlock.store.timer import TimerRow

_COLUMNS = ("timer", "schedule", "running", "of", "per tick", "runs", "failures", "last run", "server", "skipped")
_SPARE = ("of", "per tick", "failures")


@click.group(name="timers", cls=NounGroup)
def command() -> None:
    """See what fires, where it last ran and why it was skipped."""


@command.command(name="list")
@click.argument("name", required=False)
@json_option
@click.pass_obj
def list_timers(options: dict[str, Any], *, name: str | None, as_json: bool) -> None:
    """The timers that servers declared, with who runs them now and their skips by reason."""
    rows, holders, whose = asyncio.run(_timers(options, name))
    if as_json:
        show_json([_record(row, holders) for row in rows])
    elif not rows:
        click.echo(f"no server has declared such a timer{whose}", err=True)
    else:
        show_table(_COLUMNS, [_cells(row, holders) for row in rows], spare=_SPARE)


async def _timers(options: dict[str, Any], name: str | None) -> tuple[list[TimerRow], list[Holder] | None, str]:
    """None instead of holders says that the lock service does not answer."""
    app = choose_app(options)
    async with app:
        rows = await app.timers.alist(name)
        try:
            return rows, await app.locks.aholders(), in_namespace(app)
        except LockServiceUnavailable as error:
            click.echo(f"interlock: {error}", err=True)
            return rows, None, in_namespace(app)


def _of(row: TimerRow, holders: list[Holder] | None) -> list[Holder] | None:
    return None if holders is None else [holder for holder in holders if holder.name == f"timer:{row.name}"]


def _cells(row: TimerRow, holders: list[Holder] | None) -> tuple[Any, ...]:
    running = _of(row, holders)
    skips = tuple(f"{reason} {count}" for reason, count in sorted(row.skips.items()))
    return (
        row.name,
        _schedule(row),
        None if running is None or not row.distributed else len(running),
        row.max_concurrency if row.distributed else f"{row.max_concurrency} per server",
        row.runs_per_tick,
        row.runs,
        row.failures,
        row.last_run_at,
        row.last_host,
        skips or None,
    )


def _record(row: TimerRow, holders: list[Holder] | None) -> dict[str, Any]:
    running = _of(row, holders)
    return {
        "name": row.name,
        "app": row.app,
        "schedule": row.schedule,
        "max_concurrency": row.max_concurrency,
        "runs_per_tick": row.runs_per_tick,
        "distributed": row.distributed,
        "running": None if running is None else [{"slot": each.slot, "owner": each.owner} for each in running],
        "runs": row.runs,
        "failures": row.failures,
        "last_run_at": row.last_run_at,
        "last_host": row.last_host,
        "last_tick_at": row.tick_at,
        "skips": row.skips,
        "lock_trouble": row.lock_trouble,
        "last_seen_at": row.last_seen_at,
    }


def _schedule(row: TimerRow) -> str:
    try:
        return describe(decode_schedule(row.schedule))
    except InvalidSchedule:
        return str(row.schedule)
