"""A small shop on three servers and a database of its own: it works, one server is killed, the others take over."""

from __future__ import annotations

import asyncio

import click

from interlock.cli.client import Amount
from interlock.cli.options import json_option, option
from interlock.cli.output import show_json


@click.command(name="demo")
@option("--seconds", type=Amount(min=1, max=86400), help="End by itself after the servers ran for so long.")
@option("--keep", is_flag=True, help="Leave the database folder for a later look.")
@json_option
def command(*, seconds: float | None, keep: bool, as_json: bool) -> None:
    """Watch a small fleet work, lose a server and recover, on a database of its own; Ctrl-C ends it with a summary.

    With --json it only prints the summary.
    """
    from interlock.cli.demo.show import Show
    from interlock.cli.demo.view import open_view

    with open_view(quiet=as_json) as view:
        summary = asyncio.run(Show(seconds, view).watch(keep=keep))
    if summary is None:
        return
    if as_json:
        show_json(summary.record())
    else:
        click.echo(summary.text())
