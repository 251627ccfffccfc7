from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.client import LIMIT, with_app
from interlock.cli.options import AppCommand, addressed, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.cli.records import record
from interlock.operate.fires import coming_fires

if TYPE_CHECKING:
    from interlock.operate.fires import Occurrence


@click.command(name="next", cls=AppCommand)
@click.argument("manifest", required=False, shell_complete=completion.manifests)
@option("-n", "--count", type=LIMIT, default=20, help="How many fires.")
@option("--group", help="Only those of this group.", shell_complete=completion.groups)
@json_option
@click.pass_obj
def next_fires(options: dict[str, Any], *, manifest: str | None, count: int, group: str | None, as_json: bool) -> None:
    """The coming fires of one manifest or of all, in UTC and in their zone; exclusions and clock changes are marked."""
    plans = with_app(options, lambda app: app.views.plans(manifest, group=group))
    found = coming_fires([plan for plan in plans if plan.enabled or manifest], count)
    if as_json:
        show_json([record(one) | {"local": one.local.isoformat()} for one in found])
    elif not found:
        click.echo(addressed("nothing is planned; see: interlock manifests list", options), err=True)
    else:
        show_table(("at", "manifest", "local time", "zone", "note"), [_cells(one) for one in found], spare=("zone",))


def _cells(one: Occurrence) -> tuple[Any, ...]:
    local = one.local.strftime("%a %Y-%m-%d %H:%M:%S %z")
    return one.at, one.external_id, local, one.zone, "; ".join(one.marks) or ""
