from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from interlock.app import fast_loop
from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.observe import events
from interlock.observe.logs import LogSubscriber, configure_logging
from interlock.runtime.main import run_main

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.app import Interlock

LEAVES_WITHIN = 3.0


class Stopped(KeyboardInterrupt):
    """SIGTERM before the server took the signals over; no error of an app's module hides it."""


@contextmanager
def _stopped_by_sigterm(served: list[events.Event]) -> Iterator[None]:
    """A deploy that changes its mind while the app is imported or the schema is applied is no failure.

    Once it has served nothing is left but to end, and a second signal does that at once.
    """

    def stop(*_: object) -> None:
        if served:
            os._exit(1)
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
    serve(ctx, server_name, as_json=as_json, roles=_roles(roles), probes=probes)


def serve(ctx: click.Context, server_name: str | None, *, as_json: bool, **wanted: Any) -> None:
    """Run the app as the server that is wanted, with logs, until it is told to stop."""
    served: list[events.Event] = []
    try:
        with _stopped_by_sigterm(served):
            _serve(ctx, server_name, served, as_json=as_json, **wanted)
    except Stopped:
        click.echo("interlock: stopped by SIGTERM before it served", err=True)


def _serve(
    ctx: click.Context, server_name: str | None, served: list[events.Event], *, as_json: bool, **wanted: Any
) -> None:
    flagged = ctx.get_parameter_source("server_name") is ParameterSource.COMMANDLINE
    app = choose_app(ctx.obj, server_name=server_name if flagged else None)
    configure_logging(sys.stderr, "DEBUG" if ctx.obj.get("debug") else "INFO", "json" if as_json else "auto")
    app.events.subscribe(LogSubscriber())
    app.events.subscribe(served.append, kinds=(events.Stopped,))
    run_main(_until_stopped(app, **wanted), fast_loop())


async def _until_stopped(app: Interlock, **wanted: Any) -> None:
    supervisor = await app.arun(**wanted)
    if supervisor.forced:
        os._exit(1)  # a body that ignores its cancellation must not keep the process
    leaving = threading.Timer(LEAVES_WITHIN, _leave)
    leaving.daemon = True
    leaving.start()


def _leave() -> None:
    """All is handed back by now: no deploy has to wait for a thread that the app has left behind."""
    click.echo("interlock: stopped, without waiting for a thread of the app that goes on", err=True)
    os._exit(0)


def _roles(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None
