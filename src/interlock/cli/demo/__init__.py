"""A small shop on three servers and a database of its own: it works, one server is killed, the others take over."""

from __future__ import annotations

import asyncio
import shlex

import click

from interlock.cli.client import Amount
from interlock.cli.options import json_option, option
from interlock.cli.output import show_json
from interlock.settings import variable


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
        show = Show(seconds, view)
        summary = asyncio.run(show.watch(keep=keep))
    if summary is None:
        return
    if as_json:
        show_json(summary.record() | ({"folder": str(show.folder)} if keep else {}))
        return
    click.echo(summary.text())
    if keep:
        chosen = f"{variable('embedded_folder')}={shlex.quote(str(show.folder))}/pg"
        click.echo(f"\nlook into its database with: {chosen} interlock executions list")
