from __future__ import annotations

from typing import Any

import click

from interlock.cli import completion
from interlock.cli.client import with_app
from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.output import show_json
from interlock.operate.draw import FORMATS


@click.command(name="graph", cls=AppCommand)
@option("--format", "form", type=click.Choice(sorted(FORMATS)), default="text", help="How to draw it.")
@option("--group", help="Only those of this group.", shell_complete=completion.groups)
@json_option
@click.pass_obj
def draw_manifests(options: dict[str, Any], *, form: str, group: str | None, as_json: bool) -> None:
    """Who waits for whom; a dormant dependent is marked."""
    plans = with_app(options, lambda app: app.views.plans(group=group))
    if as_json:
        nodes = [{"id": one.external_id, "train": one.train, "enabled": one.enabled} for one in plans]
        edges = [
            {"from": one.parent, "to": one.external_id, "dormant": one.schedule_kind == "dormant"}
            for one in plans
            if one.parent is not None
        ]
        show_json({"nodes": nodes, "edges": edges})
    elif not plans:
        click.echo("there is no manifest", err=True)
    else:
        click.echo(FORMATS[form](plans))
