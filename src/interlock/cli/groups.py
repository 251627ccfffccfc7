from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, changing
from interlock.cli.client import Number, with_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.cli.records import record
from interlock.operate.group import UNSET

if TYPE_CHECKING:
    from interlock.cli.acting import Intent
    from interlock.model.reading import GroupLine
    from interlock.operate.group import GroupChange

_COLUMNS = ("group", "on", "priority", "cap", "active", "ready", "later", "manifests")


@click.group(name="groups", cls=NounGroup)
def command() -> None:
    """See and set caps, priorities and switches of manifest groups."""


@command.command(name="list")
@json_option
@click.pass_obj
def list_groups(options: dict[str, Any], *, as_json: bool) -> None:
    """Every group, with how much of its cap is used and what waits in it."""
    groups = with_app(options, lambda app: app.views.groups())
    if as_json:
        show_json([record(group) for group in groups])
    else:
        show_table(_COLUMNS, [_cells(group) for group in groups])


@command.command(name="set")
@click.argument("group", shell_complete=completion.groups)
@option("--cap", type=Number(min=1, max=2**31 - 1), help="At most so many active at once.")
@option("--no-cap", is_flag=True, help="Take the cap away.")
@option("--priority", type=Number(min=0, max=31), help="From 0 to 31; higher goes first.")
@option("--enable/--disable", "enabled", default=None, help="Queue and dispatch its work, or not.")
@changing
@json_option
@click.pass_obj
def set_group(
    options: dict[str, Any],
    *,
    group: str,
    cap: int | None,
    no_cap: bool,
    priority: int | None,
    enabled: bool | None,
    intent: Intent,
    as_json: bool,
) -> None:
    """Change the cap, the priority or the switch; it counts from the next tick on, and survives deploys."""
    if cap is None and not no_cap and priority is None and enabled is None:
        raise click.UsageError("nothing to set: name at least one of --cap, --no-cap, --priority, --enable, --disable")
    if cap is not None and no_cap:
        raise click.UsageError("a cap and none contradict each other: either a --cap or --no-cap")
    wanted = None if no_cap else (UNSET if cap is None else cap)
    change = act(
        options,
        intent,
        lambda commands: commands.set_group(group, max_active_jobs=wanted, priority=priority, enabled=enabled),
    )
    if as_json:
        show_json(intent.answer("set", group, before=change.before, settings=change.settings))
    else:
        click.echo(_told(change, intent))


def _told(change: GroupChange, intent: Intent) -> str:
    if not change.before:
        return f"{change.name} is so already; nothing was changed"
    changes = ", ".join(f"{name} {was} → {change.settings[name]}" for name, was in change.before.items())
    return f"{intent.words('set', 'set')} {change.name}: {changes}"


def _cells(group: GroupLine) -> tuple[Any, ...]:
    return (
        group.name,
        "yes" if group.enabled else "no",
        group.priority,
        group.max_active_jobs,
        group.active,
        group.ready,
        group.later,
        group.manifests,
    )
