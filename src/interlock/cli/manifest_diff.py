from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli.client import with_app
from interlock.cli.options import AppCommand, json_option
from interlock.cli.output import show_json
from interlock.cli.records import record, schedule_text
from interlock.operate.diff import differences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.app import Interlock
    from interlock.operate.diff import Difference

_SIGNS = {"create": "+", "change": "~", "keep": "=", "prune": "-", "refuse": "!"}


@click.command(name="diff", cls=AppCommand)
@json_option
@click.pass_obj
def diff_manifests(options: dict[str, Any], *, as_json: bool) -> None:
    """What a deploy of the code given with -a would change, and which settings of operators it would keep."""
    found = with_app(options, _differences)
    if as_json:
        show_json([record(one) for one in found])
    elif not found:
        click.echo("a deploy would change nothing", err=True)
    else:
        click.echo("\n".join(line for one in found for line in _lines(one)))


async def _differences(app: Interlock) -> list[Difference]:
    return await differences(await app.adatabase(), app.declarations, app.settings.runtime.name)


def _lines(one: Difference) -> Iterator[str]:
    reason = f": {one.reason}" if one.reason else ""
    yield f"{_SIGNS[one.what]} {one.what} {one.kind} {one.name}{reason}"
    if one.what == "change":
        for name, sides in one.fields.items():
            yield f"    {name}: {_shown(name, sides['before'])} → {_shown(name, sides['after'])}"
    for name, sides in one.kept.items():
        yield f"    {name}: {sides['stored']} stays, as an operator set it (code says {sides['code']})"


def _shown(name: str, value: Any) -> str:
    if name == "schedule" and value is not None:
        return schedule_text(value)
    return f"{value[:8]}…" if name == "input" and isinstance(value, str) else str(value)
