from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.output import json_option, show_json, show_table
from interlock.store.address import describe_address

SECRET = {"dsn": describe_address, "redis_url": describe_address}


@click.command(name="config")
@click.option("--show-origin", is_flag=True, help="Say where each value came from.")
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, show_origin: bool, as_json: bool) -> None:
    """Every setting with its value; addresses are shown without user and password."""
    found = [(name, _shown(name, value), origin) for name, value, origin in choose_app(options).settings.options()]
    if as_json:
        show_json({name: {"value": value, "origin": origin} for name, value, origin in found})
    elif show_origin:
        show_table(("setting", "value", "origin"), found)
    else:
        show_table(("setting", "value"), [row[:2] for row in found])


def _shown(name: str, value: Any) -> Any:
    if value is not None and name in SECRET:
        return SECRET[name](value)
    return f"{value.total_seconds():g}s" if isinstance(value, timedelta) else value
