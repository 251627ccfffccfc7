from __future__ import annotations

import click

from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.run import serve

DEFAULT = "127.0.0.1:7070"


@click.command(name="runner", cls=AppCommand)
@option(
    "--listen",
    envvar="INTERLOCK_LISTEN",
    default=DEFAULT,
    show_default=True,
    help="Take work at PORT (of the loopback) or ADDRESS:PORT.",
)
@option("--server-name", envvar="INTERLOCK_SERVER_NAME", help="Stable between restarts; default: the host's name.")
@option("--probes", envvar="INTERLOCK_PROBES", help="Answer /live, /ready and /startup at PORT or ADDRESS:PORT.")
@json_option
@click.pass_context
def command(ctx: click.Context, *, listen: str, server_name: str | None, probes: str | None, as_json: bool) -> None:
    """Run only what other servers submit to it, until SIGTERM; needs INTERLOCK_RUNNER_SECRET, the same as theirs.

    It is a server like any other: it has a lease, and what it was running when it dies runs again.
    """
    serve(ctx, server_name, as_json=as_json, probes=probes, runner=listen)
