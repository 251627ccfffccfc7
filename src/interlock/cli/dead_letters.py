from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, destructive
from interlock.cli.client import CURSOR, ID, LIMIT, with_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import json_text, show_json, show_text
from interlock.cli.records import record, show_fields, show_page
from interlock.model.dead_letter import DeadLetterFilter
from interlock.model.lifecycle import DeadLetterState
from interlock.operate.resolve import Resolved

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.cli.acting import Intent
    from interlock.model.dead_letter import DeadLetter
    from interlock.operate.commands import Commands

_COLUMNS = ("id", "state", "train", "manifest", "group", "reason", "failure", "attempts", "since", "error")
_SPARE = ("state", "group", "failure")


@click.group(name="dead-letters", cls=NounGroup)
def command() -> None:
    """See what failed beyond its attempts, and decide."""


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    for flag in (
        option("--failure", help="Only those that failed so, such as error or timeout."),
        option("--group", help="Only those of this group.", shell_complete=completion.groups),
        option("--manifest", help="Only those of this manifest.", shell_complete=completion.manifests),
        option("--train", help="Only those of this train.", shell_complete=completion.trains),
    ):
        function = flag(function)
    return function


@command.command(name="list")
@option(
    "--state",
    type=click.Choice([*(state.value for state in DeadLetterState), "all"]),
    default="awaiting_intervention",
    help="In this state.",
)
@_filters
@option("--after", type=CURSOR, default=0, help="Only those after this one: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_dead_letters(options: dict[str, Any], /, *, state: str, as_json: bool, **wanted: Any) -> None:
    """Dead letters, the oldest first; by default those that wait for a person."""
    chosen = None if state == "all" else state
    page = with_app(options, lambda app: app.views.dead_letters(state=chosen, counted=not as_json, **wanted))
    show_page(
        page, _COLUMNS, _cells, as_json=as_json, nothing="nothing waits for a person", cursor="--after", spare=_SPARE
    )


@command.command(name="show")
@click.argument("dead_letter", type=ID, shell_complete=completion.dead_letters)
@json_option
@click.pass_obj
def show_dead_letter(options: dict[str, Any], *, dead_letter: int, as_json: bool) -> None:
    """One dead letter with its input, its last failure and the attempts before it."""
    found = with_app(options, lambda app: app.views.dead_letter(dead_letter))
    said = record(found)
    if as_json:
        show_json(said)
        return
    attempts = tuple(f"execution {line.id} ({line.state})" for line in found.attempts) or None
    show_fields(said | {"input": json_text(found.input), "attempts": attempts, "traceback": None})
    if found.traceback:
        show_text(found.traceback)


@command.command(name="requeue")
@click.argument("dead_letters", type=ID, nargs=-1, shell_complete=completion.dead_letters)
@option("--all", "everything", is_flag=True, help="All that wait for a person.")
@_filters
@destructive
@json_option
@click.pass_obj
def requeue(options: dict[str, Any], /, *, intent: Intent, as_json: bool, **choice: Any) -> None:
    """Queue the work again from its first attempt: by id, all that fit a filter, or all."""
    _resolve(options, intent, "requeue", _chosen(**choice), as_json=as_json)


@command.command(name="acknowledge")
@click.argument("dead_letters", type=ID, nargs=-1, shell_complete=completion.dead_letters)
@option("--all", "everything", is_flag=True, help="All that wait for a person.")
@_filters
@destructive
@json_option
@click.pass_obj
def acknowledge(options: dict[str, Any], /, *, intent: Intent, as_json: bool, **choice: Any) -> None:
    """Close without running anything; say why with --note. A manifest goes on with its schedule."""
    _resolve(options, intent, "acknowledge", _chosen(**choice), as_json=as_json)


def _chosen(*, dead_letters: tuple[int, ...], everything: bool, **filters: str | None) -> DeadLetterFilter:
    given = {name: value for name, value in filters.items() if value is not None}
    if sum((bool(dead_letters), everything, bool(given))) != 1:
        raise click.UsageError(
            "which dead letters? ids, or --all, or filters (--train, --manifest, --group, --failure): one of the three"
        )
    return DeadLetterFilter(ids=list(dict.fromkeys(dead_letters)) or None, **given)


def _resolve(options: dict[str, Any], intent: Intent, verb: str, wanted: DeadLetterFilter, *, as_json: bool) -> None:
    async def resolve(commands: Commands) -> Resolved:
        if wanted.ids is not None and len(wanted.ids) == 1:
            [one] = wanted.ids
            if verb == "requeue":
                return Resolved({one: await commands.requeue(one)})
            await commands.acknowledge(one)
            return Resolved({one: None})
        many = commands.requeue_many if verb == "requeue" else commands.acknowledge_many
        try:
            return await many(wanted)
        except BaseException as error:  # an interrupt, too, stops between two batches
            for note in getattr(error, "__notes__", ()):
                click.echo(f"interlock: {note}", err=True)
            raise

    found = act(options, intent, resolve, lambda found: f"{verb} {_counted(found)}?" if found.entries else "")
    if as_json:
        show_json(_answer(intent, verb, found))
        return
    click.echo(intent.words(f"{verb}d {_counted(found)}", f"{verb} {_counted(found)}"))
    if found.skipped:
        click.echo(f"resolved by others before: {', '.join(map(str, found.skipped))}", err=True)


def _counted(found: Resolved) -> str:
    return f"{len(found.entries)} dead letter{'' if len(found.entries) == 1 else 's'}"


def _answer(intent: Intent, verb: str, found: Resolved) -> dict[str, Any]:
    resolved = [
        {"id": str(letter), "entry_id": None if entry is None or intent.dry_run else str(entry)}
        for letter, entry in found.entries.items()
    ]
    return {
        "action": verb,
        "dry_run": intent.dry_run,
        "dead_letters": resolved,
        "skipped": [str(one) for one in found.skipped],
    }


def _cells(letter: DeadLetter) -> tuple[Any, ...]:
    return (
        letter.id,
        letter.state,
        letter.train,
        letter.external_id,
        letter.group,
        letter.reason,
        letter.failure,
        letter.attempts,
        letter.created_at,
        None if letter.error_type is None else f"{letter.error_type}: {letter.error_message}",
    )
