from __future__ import annotations

import os
import sys

import click
from click.core import ParameterSource

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.observe.logs import LogSubscriber, configure_logging


@click.command(name="run", cls=AppCommand)
@option("--roles", envvar="INTERLOCK_ROLES", default="", help="Some of them, separated by commas; default: all.")
@option("--server-name", envvar="INTERLOCK_SERVER_NAME", help="Stable between restarts; default: the host's name.")
@option("--probes", envvar="INTERLOCK_PROBES", help="Answer /live, /ready and /startup at PORT or ADDRESS:PORT.")
@json_option
@click.pass_context
def command(ctx: click.Context, *, roles: str, server_name: str | None, probes: str | None, as_json: bool) -> None:
    """Run as a server until SIGTERM; a second signal forces. Logs go to stderr, as JSON when it is no terminal."""
    flagged = ctx.get_parameter_source("server_name") is ParameterSource.COMMANDLINE
    app = choose_app(ctx.obj, server_name=server_name if flagged else None)
    wanted = _roles(roles)
    configure_logging(sys.stderr, "DEBUG" if ctx.obj.get("debug") else "INFO", "json" if as_json else "auto")
    app.events.subscribe(LogSubscriber())
    supervisor = app.run(wanted, probes=probes)
    if supervisor.forced:
        os._exit(1)  # a body that ignores its cancellation must not keep the process


def _roles(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None
