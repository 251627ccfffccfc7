from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import destructive
from interlock.cli.cancelling import cancel_each
from interlock.cli.client import CURSOR, ID, LIMIT, with_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import show_json
from interlock.cli.records import record, show_fields, show_page
from interlock.model.lifecycle import WorkState
from interlock.model.work import WorkKind

if TYPE_CHECKING:
    from interlock.cli.acting import Intent
    from interlock.model.reading import EntryLine

_COLUMNS = ("id", "state", "kind", "train", "manifest", "group", "attempt", "priority", "queued", "not before")
_SPARE = ("state", "kind", "attempt", "group", "priority")


@click.group(name="queue", cls=NounGroup)
def command() -> None:
    """See what waits, and take it out."""


@command.command(name="list")
@option(
    "--state",
    type=click.Choice([*(state.value for state in WorkState), "all"]),
    default="queued",
    help="Others stay for an hour.",
)
@option("--train", help="Only those of this train.", shell_complete=completion.trains)
@option("--group", help="Only those of this group.", shell_complete=completion.groups)
@option("--manifest", help="Only those of this manifest.", shell_complete=completion.manifests)
@option("--kind", type=click.Choice([kind.value for kind in WorkKind]), help="Only those of this kind.")
@option("--after", type=CURSOR, default=0, help="Only those after this entry: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_entries(options: dict[str, Any], /, *, state: str, as_json: bool, **wanted: Any) -> None:
    """Entries of the work queue, the oldest first."""
    chosen = None if state == "all" else state
    page = with_app(options, lambda app: app.views.queue(state=chosen, counted=not as_json, **wanted))
    show_page(page, _COLUMNS, _cells, as_json=as_json, nothing="nothing waits", cursor="--after", spare=_SPARE)


@command.command(name="show")
@click.argument("entry", type=ID, shell_complete=completion.entries)
@json_option
@click.pass_obj
def show_entry(options: dict[str, Any], *, entry: int, as_json: bool) -> None:
    """One entry with its input and the attempts at it."""
    found = with_app(options, lambda app: app.views.entry(entry))
    said = record(found)
    if as_json:
        show_json(said)
    else:
        show_fields(
            said | {"attempts": tuple(f"execution {line.id} ({line.state})" for line in found.attempts) or None}
        )


@command.command(name="cancel")
@click.argument("entries", type=ID, nargs=-1, required=True, shell_complete=completion.entries)
@destructive
@json_option
@click.pass_obj
def cancel_entries(options: dict[str, Any], *, entries: tuple[int, ...], intent: Intent, as_json: bool) -> None:
    """End the work of entries (the id of a handle), whatever attempt it is at."""
    cancel_each(options, intent, "entry", entries, as_json=as_json)


def _cells(line: EntryLine) -> tuple[Any, ...]:
    return (
        line.id,
        line.state,
        line.kind,
        line.train,
        line.manifest,
        line.group,
        f"{line.attempt}/{line.max_attempts}",
        f"{line.group_priority}/{line.priority}",
        line.created_at,
        None if line.ready else line.scheduled_at,
    )
