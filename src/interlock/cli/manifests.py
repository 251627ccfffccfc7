from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, changing, destructive
from interlock.cli.client import DURATION, LIMIT, with_app
from interlock.cli.manifest_diff import diff_manifests
from interlock.cli.manifest_graph import draw_manifests
from interlock.cli.manifest_next import next_fires
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import json_text, show_json
from interlock.cli.records import record, schedule_text, show_fields, show_page

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.cli.acting import Intent
    from interlock.model.reading import ManifestDetail, ManifestLine

_COLUMNS = ("manifest", "train", "group", "schedule", "on", "next run", "last success", "state")
_SPARE = ("group", "train")


@click.group(name="manifests", cls=NounGroup)
def command() -> None:
    """See what is scheduled, trigger it, and switch it on and off."""


@command.command(name="list")
@option("--group", help="Only those of this group.", shell_complete=completion.groups)
@option("--train", help="Only those of this train.", shell_complete=completion.trains)
@option("--enabled/--disabled", "enabled", default=None, help="Only those that are on, or off.")
@option("--search", help="Only those whose name contains this.")
@option("--after", default="", help="Only those after this name: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_manifests(options: dict[str, Any], /, *, as_json: bool, **wanted: Any) -> None:
    """Manifests by name, with their next run and what holds them back."""
    page = with_app(options, lambda app: app.views.manifests(counted=not as_json, **wanted))
    show_page(page, _COLUMNS, _cells, as_json=as_json, nothing="no manifest fits", cursor="--after", spare=_SPARE)


@command.command(name="show")
@click.argument("manifest", shell_complete=completion.manifests)
@json_option
@click.pass_obj
def show_manifest(options: dict[str, Any], *, manifest: str, as_json: bool) -> None:
    """Everything about one manifest, with what waits, runs and ran lately."""
    found = with_app(options, lambda app: app.views.manifest(manifest))
    if as_json:
        show_json(record(found) | {"schedule_text": schedule_text(found.schedule)})
    else:
        show_fields(_said(found))


@command.command(name="trigger")
@click.argument("manifest", shell_complete=completion.manifests)
@option("--delay", type=DURATION, default="0", help="Run it after this time, such as 30s, 5m or 2h.")
@changing
@json_option
@click.pass_obj
def trigger_manifest(
    options: dict[str, Any], *, manifest: str, delay: timedelta, intent: Intent, as_json: bool
) -> None:
    """Queue a run out of turn; the schedule goes on as planned."""
    entry = act(options, intent, lambda commands: commands.trigger(manifest, delay=delay))
    number = None if intent.dry_run else str(entry)
    if as_json:
        show_json(intent.answer("trigger", manifest, entry_id=number, delay_seconds=delay))
    else:
        click.echo(intent.words(f"triggered {manifest}: entry {entry}", f"trigger {manifest}"))


@command.command(name="enable")
@click.argument("manifest", shell_complete=completion.manifests)
@changing
@json_option
@click.pass_obj
def enable_manifest(options: dict[str, Any], *, manifest: str, intent: Intent, as_json: bool) -> None:
    """Switch a manifest on; its next run is as planned."""
    changed = act(options, intent, lambda commands: commands.enable(manifest))
    _tell_switched(intent, "enable", manifest, changed=changed, as_json=as_json)


@command.command(name="disable")
@click.argument("manifest", shell_complete=completion.manifests)
@changing
@json_option
@click.pass_obj
def disable_manifest(options: dict[str, Any], *, manifest: str, intent: Intent, as_json: bool) -> None:
    """Switch a manifest off; what waits or runs already goes on."""
    changed = act(options, intent, lambda commands: commands.disable(manifest))
    _tell_switched(intent, "disable", manifest, changed=changed, as_json=as_json)


@command.command(name="prune")
@destructive
@json_option
@click.pass_obj
def prune_manifests(options: dict[str, Any], *, intent: Intent, as_json: bool) -> None:
    """Remove declared manifests that neither a live server of the app nor the code given with -a declares."""
    pruned = act(options, intent, lambda commands: commands.prune(), _question)
    if as_json:
        show_json({"action": "prune", "dry_run": intent.dry_run, "manifests": pruned})
    else:
        click.echo(intent.words(f"removed {_listed(pruned)}", f"remove {_listed(pruned)}"))


command.add_command(next_fires)
command.add_command(draw_manifests)
command.add_command(diff_manifests)


def _tell_switched(intent: Intent, verb: str, manifest: str, *, changed: bool, as_json: bool) -> None:
    if as_json:
        show_json(intent.answer(verb, manifest, changed=changed))
    elif changed:
        click.echo(intent.words(f"{verb}d {manifest}", f"{verb} {manifest}"))
    else:
        click.echo(f"{manifest} is {verb}d already; nothing was changed")


def _question(found: list[str]) -> str:
    return f"remove {_listed(found)}?" if found else ""


def _listed(names: list[str]) -> str:
    return f"{len(names)} manifest{'' if len(names) == 1 else 's'}: {', '.join(names)}" if names else "nothing"


def _cells(line: ManifestLine) -> tuple[Any, ...]:
    return (
        line.external_id,
        line.train,
        line.group if line.group_enabled else f"{line.group} (off)",
        schedule_text(line.schedule),
        "yes" if line.enabled else "no",
        line.next_run_at,
        line.last_success_at,
        _state(line),
    )


def _state(line: ManifestLine) -> str | None:
    words = ("queued", "active", "dead_lettered", "write_failed")
    return ", ".join(word.replace("_", " ") for word in words if getattr(line, word)) or None


def _said(found: ManifestDetail) -> dict[str, Any]:
    said = record(found) | {"schedule": schedule_text(found.schedule)}
    said.pop("declared")
    said |= {"input": json_text(found.input), "children": tuple(found.children)}
    said["queued"] = tuple(f"entry {line.id} ({line.kind})" for line in found.queued)
    said["executions"] = tuple(f"execution {line.id} ({line.state})" for line in found.executions)
    return {name: value for name, value in said.items() if value != ()}
