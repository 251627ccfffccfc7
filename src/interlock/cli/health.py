from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.operate.health import State

if TYPE_CHECKING:
    from interlock.operate.health import FleetHealth

_EXIT_CODES = {State.HEALTHY: 0, State.DEGRADED: 5, State.UNHEALTHY: 1}


@click.command(name="health", cls=AppCommand)
@option("--server", envvar="INTERLOCK_HEALTH_SERVER", help="Only this server, by its name.")
@json_option
@click.pass_context
def command(ctx: click.Context, *, server: str | None, as_json: bool) -> None:
    """Say by the exit code whether the fleet works: 0 healthy, 5 degraded, 1 unhealthy or no database, 4 no schema."""
    health = asyncio.run(_health(ctx.obj, server))
    if as_json:
        checks = [{"check": one.name, "state": one.state, "detail": one.detail} for one in health.checks]
        show_json({"state": health.state, "checks": checks})
    else:
        show_table(("check", "state", "detail"), [(one.name, one.state, one.detail) for one in health.checks])
    ctx.exit(_EXIT_CODES[health.state])


async def _health(options: dict[str, Any], server: str | None) -> FleetHealth:
    app = choose_app(options)
    async with app:
        return await app.ahealth(server=server)
