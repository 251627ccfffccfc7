from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, changing, destructive
from interlock.cli.cancelling import cancel_each
from interlock.cli.client import ID, LIMIT, with_app
from interlock.cli.inputs import arg_option, edited_input, input_option, pairs
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import json_text, show_json, show_table, show_text
from interlock.cli.records import record, show_fields, show_page
from interlock.cli.table import moment
from interlock.model.lifecycle import ExecutionState
from interlock.model.work import WorkKind
from interlock.operate.timeline import timeline

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.cli.acting import Intent
    from interlock.model.reading import ExecutionDetail, ExecutionLine

_COLUMNS = ("id", "state", "train", "manifest", "kind", "attempt", "server", "dispatched", "ran", "failure")
_SPARE = ("kind", "attempt", "server")


@click.group(name="executions", cls=NounGroup)
def command() -> None:
    """See what runs and ran, cancel it, and run it again."""


@command.command(name="list")
@option("--state", type=click.Choice([state.value for state in ExecutionState]), help="Only those in this state.")
@option("--active/--ended", "active", default=None, help="Only those that are dispatched or run, or that ended.")
@option("--train", help="Only those of this train.", shell_complete=completion.trains)
@option("--group", help="Only those of this group.", shell_complete=completion.groups)
@option("--manifest", help="Only those of this manifest.", shell_complete=completion.manifests)
@option("--kind", type=click.Choice([kind.value for kind in WorkKind]), help="Only those of this kind.")
@option("--failure", help="Only those that failed so, such as error or timeout.")
@option("--before", type=ID, help="Only those before this execution: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_executions(options: dict[str, Any], /, *, as_json: bool, **wanted: Any) -> None:
    """Attempts, the latest first."""
    page = with_app(options, lambda app: app.views.executions(counted=not as_json, **wanted))
    show_page(page, _COLUMNS, _cells, as_json=as_json, nothing="no execution fits", cursor="--before", spare=_SPARE)


@command.command(name="show")
@click.argument("execution", type=ID, shell_complete=completion.executions)
@json_option
@click.pass_obj
def show_execution(options: dict[str, Any], *, execution: int, as_json: bool) -> None:
    """One attempt with its input, output, failure, waits, and the other attempts at the same work."""
    found = with_app(options, lambda app: app.views.execution(execution))
    if as_json:
        show_json(record(found) | {"timeline": [record(step) for step in timeline(found)]})
    else:
        _show(found)


@command.command(name="cancel")
@click.argument("executions", type=ID, nargs=-1, shell_complete=completion.executions)
@option("--manifest", help="All that waits or runs of this manifest.", shell_complete=completion.manifests)
@option("--group", help="All that waits or runs in this group.", shell_complete=completion.groups)
@destructive
@json_option
@click.pass_obj
def cancel_executions(
    options: dict[str, Any],
    *,
    executions: tuple[int, ...],
    manifest: str | None,
    group: str | None,
    intent: Intent,
    as_json: bool,
) -> None:
    """End runs and the attempts that would follow them: by id, or all of a manifest or a group."""
    chosen: list[tuple[str, list[int | str]]] = [("execution", [*executions])] if executions else []
    chosen += [("manifest", [manifest])] if manifest is not None else []
    chosen += [("group", [group])] if group is not None else []
    if len(chosen) != 1:
        raise click.UsageError("which executions? ids, or --manifest, or --group: one of them")
    kind, targets = chosen[0]
    cancel_each(options, intent, kind, targets, as_json=as_json)


@command.command(name="rerun")
@click.argument("execution", type=ID, shell_complete=completion.executions)
@arg_option
@input_option
@changing
@json_option
@click.pass_obj
def rerun_execution(
    options: dict[str, Any],
    *,
    execution: int,
    args: tuple[str, ...],
    json_input: str | None,
    intent: Intent,
    as_json: bool,
) -> None:
    """Run an ended execution again from its first attempt, with its own input or an edited one."""
    texts = pairs(args)
    edited = with_app(options, lambda app: _edited(app, execution, texts, json_input))
    entry = act(options, intent, lambda commands: commands.rerun(execution, input=edited))
    number = None if intent.dry_run else str(entry)
    if as_json:
        show_json(intent.answer("rerun", execution, entry_id=number, input=edited))
    else:
        click.echo(intent.words(f"queued again: entry {entry}", f"queue execution {execution} again"))


async def _edited(
    app: Interlock, execution: int, texts: list[tuple[str, str]], json_input: str | None
) -> dict[str, Any] | None:
    """Its own input with the arguments put in; None when nothing was edited."""
    if not texts and json_input is None:
        return None
    found = await app.views.execution(execution)
    return await edited_input(app, found.line.train, found.input, texts, json_input)


def _show(found: ExecutionDetail) -> None:
    said = record(found)
    for part in ("attempts", "waiting", "dead_letters", "reruns", "traceback"):
        said.pop(part)
    said |= {name: json_text(said[name]) for name in ("input", "output") if said[name] is not None}
    show_fields({"server" if name == "host" else name: value for name, value in said.items()})
    steps = [(step.what, step.at, step.after) for step in timeline(found)]
    show_table(("", "at", "after"), steps)
    if len(found.attempts) > 1:
        show_table(_COLUMNS, [_cells(line) for line in found.attempts], spare=_SPARE)
    for entry in found.waiting:
        click.echo(f"attempt {entry.attempt} waits as entry {entry.id}, not before {moment(entry.scheduled_at)}")
    for letter in found.dead_letters:
        click.echo(f"dead letter {letter.id}: {letter.state} ({letter.reason})")
    for rerun in found.reruns:
        click.echo(f"{rerun.action} by {rerun.actor}: entry {rerun.entry_id}, execution {rerun.execution_id or '-'}")
    if found.traceback:
        show_text(found.traceback)


def _cells(line: ExecutionLine) -> tuple[Any, ...]:
    return (
        line.id,
        line.state,
        line.train,
        line.manifest,
        line.kind,
        f"{line.attempt}/{line.max_attempts}",
        line.host,
        line.created_at,
        line.ended_at - line.started_at if line.ended_at and line.started_at else None,
        line.failure,
    )
