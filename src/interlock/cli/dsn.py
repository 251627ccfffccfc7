from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option
from interlock.cli.output import show_json

if TYPE_CHECKING:
    from interlock.app import Interlock


@click.command(name="dsn", cls=AppCommand)
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, as_json: bool) -> None:
    """Print the address of the database, password included, for psql and other tools.

    An embedded database is started for it, and stops when its last user has left: keep `interlock dev` or a server
    running while you look around.
    """
    app = choose_app(options)
    embedded = app.settings.store.dsn is None
    dsn = asyncio.run(_embedded(app)) if embedded else app.dsn
    if as_json:
        show_json({"dsn": dsn, "embedded": embedded})
    else:
        click.echo(dsn)


async def _embedded(app: Interlock) -> str:
    try:
        await app.adatabase()
        return app.dsn
    finally:
        await app.aclose()
