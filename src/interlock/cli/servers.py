from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import NounGroup, addressed, json_option, option
from interlock.cli.output import show_json, show_table

if TYPE_CHECKING:
    from interlock.model.server import ServerRow


@click.group(name="servers", cls=NounGroup)
def command() -> None:
    """See who runs."""


@command.command(name="list")
@option(
    "--all", "everyone", envvar="INTERLOCK_SERVERS_LIST_ALL", is_flag=True, help="Also those that left or were lost."
)
@json_option
@click.pass_obj
def list_servers(options: dict[str, Any], *, everyone: bool, as_json: bool) -> None:
    """The servers that the registry knows, with the age of their last heartbeat.

    One whose lease ran out without its leaving is silent, until another marks it lost.
    """
    rows = asyncio.run(_servers(options, everyone=everyone))
    if as_json:
        show_json([_record(row) for row in rows])
    elif not rows:
        click.echo(addressed("no server is running; start one with: interlock run", options), err=True)
    else:
        columns = ("id", "name", "state", "roles", "host", "pid", "heartbeat", "started")
        show_table(columns, [_cells(row) for row in rows], spare=("id", "pid", "host"))


async def _servers(options: dict[str, Any], *, everyone: bool) -> list[ServerRow]:
    app = choose_app(options)
    async with app:
        return await app.aservers(all=everyone)


def _cells(row: ServerRow) -> tuple[Any, ...]:
    profile, state = row.profile, row.state if row.leased or row.ended_at is not None else "silent"
    return row.id, profile.name, state, profile.roles, profile.host, profile.pid, row.heartbeat_age, row.started_at


def _record(row: ServerRow) -> dict[str, Any]:
    profile = row.profile
    return {
        "id": row.id,
        "name": profile.name,
        "app": profile.app,
        "state": row.state,
        "leased": row.leased,
        "roles": profile.roles,
        "trains": profile.trains,
        "tags": profile.tags,
        "slots": profile.slots,
        "host": profile.host,
        "pid": profile.pid,
        "version": profile.version,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "heartbeat_age_seconds": row.heartbeat_age,
    }
