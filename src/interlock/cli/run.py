from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.observe.logs import LogSubscriber, configure_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


class Stopped(KeyboardInterrupt):
    """SIGTERM before the server took the signals over; no error of an app's module hides it."""


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """A deploy that changes its mind while the app is imported or the schema is applied is no failure."""

    def stop(*_: object) -> None:
        raise Stopped

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@click.command(name="run", cls=AppCommand)
@option("--roles", envvar="INTERLOCK_ROLES", default="", help="Some of them, separated by commas; default: all.")
@option("--server-name", envvar="INTERLOCK_SERVER_NAME", help="Stable between restarts; default: the host's name.")
@option("--probes", envvar="INTERLOCK_PROBES", help="Answer /live, /ready and /startup at PORT or ADDRESS:PORT.")
@json_option
@click.pass_context
def command(ctx: click.Context, *, roles: str, server_name: str | None, probes: str | None, as_json: bool) -> None:
    """Run as a server until SIGTERM; a second signal forces. Logs go to stderr, as JSON when it is no terminal."""
    try:
        with _stopped_by_sigterm():
            _serve(ctx, roles, server_name, probes, as_json=as_json)
    except Stopped:
        click.echo("interlock: stopped by SIGTERM before it served", err=True)


def _serve(ctx: click.Context, roles: str, server_name: str | None, probes: str | None, *, as_json: bool) -> None:
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
