from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.model.setting_values import SECRETS, spoken
from interlock.store.address import UNREADABLE, describe_address


@click.command(name="config", cls=AppCommand)
@option("--show-origin", is_flag=True, help="Say where each value came from.")
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
    if value is None or name not in SECRETS:
        return spoken(value)
    if name == "runner_secret":
        return "***"
    return describe_address(value) if name == "dsn" else _redis_address(value)


def _redis_address(url: str) -> str:
    """`host:port/database`, as for PostgreSQL; a password with a raw / ? # or @ in it must not show its rest."""
    try:
        parts = urlsplit(url)
        if not parts.hostname or "@" in parts.path + parts.query + parts.fragment:
            return UNREADABLE
        return f"{parts.hostname}:{parts.port or 6379}/{parts.path.lstrip('/') or '0'}"
    except ValueError:
        return UNREADABLE
