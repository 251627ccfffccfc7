from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import click

from interlock.cli.choose import choose_app
from interlock.errors import InvalidOption
from interlock.model.server import Role
from interlock.observe.logs import LogSubscriber, configure_logging


@click.command(name="run")
@click.option("--roles", envvar="INTERLOCK_ROLES", show_envvar=True, default="", help="Some of them; default: all.")
@click.option("--server-name", envvar="INTERLOCK_SERVER_NAME", show_envvar=True, help="Stable between restarts.")
@click.pass_obj
def command(options: dict[str, Any], *, roles: str, server_name: str | None) -> None:
    """Run as a server until SIGTERM; a second signal forces."""
    configure_logging(sys.stderr, level="DEBUG" if options["debug"] else "INFO")
    app = choose_app(options, server_name=server_name)
    app.events.subscribe(LogSubscriber())
    supervisor = asyncio.run(app.arun(_roles(roles)))
    if supervisor.forced:
        os._exit(1)  # a body that ignores its cancellation must not keep the process


def _roles(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in list(Role):
            raise InvalidOption(option="--roles", found=name, expected="some of " + ", ".join(Role))
    return names or [str(role) for role in Role]
