from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli.acting import destructive, refuse_to_ask_nobody
from interlock.cli.choose import choose_app
from interlock.cli.client import with_app
from interlock.cli.options import NounGroup, json_option
from interlock.cli.output import show_json, show_table
from interlock.model.act import ADMIN, Actor
from interlock.operate.blockers.words import span
from interlock.operate.forget import forget_history

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.cli.acting import Intent
    from interlock.upkeep.forgotten import Forgotten
    from interlock.upkeep.settings import UpkeepSettings

COUNTED_UP_TO = 10_000
"""A dry run is a real run that is taken back, so it counts no further than that."""
_WORDS = {
    "executions": "ended executions",
    "entries": "entries that left the queue",
    "dead_letters": "resolved dead letters",
    "acts": "acts in the audit",
    "orphaned_jobs": "background jobs without an active execution",
    "servers": "servers that left or were lost",
    "trains": "trains that no server knows",
    "groups": "groups that nothing uses",
}


@click.group(name="upkeep", cls=NounGroup)
def command() -> None:
    """Delete what has served its time, as every server does by itself."""


@command.command()
@destructive
@json_option
@click.pass_obj
def run(options: dict[str, Any], *, intent: Intent, as_json: bool) -> None:
    """Delete old history now, until nothing is left that may go; the app's own settings say what is old."""
    dry_run = intent.dry_run
    kept = choose_app(options).settings.upkeep
    if not dry_run and not intent.yes:
        _confirm(kept)
    forgotten = with_app(options, lambda app: _forget(app, intent))
    if as_json:
        rows = {kind: forgotten.rows[kind] for kind in _WORDS}
        capped = dry_run and forgotten.fills(COUNTED_UP_TO)
        ages = {"executions": kept.execution_retention, "dead_letters": kept.dead_letter_retention}
        show_json(
            {
                "dry_run": dry_run,
                "rows": rows,
                "executions_by_train": forgotten.trains,
                "capped": capped,
                "kept_seconds": ages | {"acts": kept.audit_retention},
            }
        )
    else:
        _show(forgotten, "would go" if dry_run else "went", _ages(kept))


def _confirm(kept: UpkeepSettings) -> None:
    refuse_to_ask_nobody()
    click.confirm(f"Delete what is older than this: {_ages(kept)}?", abort=True, err=True)


def _ages(kept: UpkeepSettings) -> str:
    """Said before and after: without -a these are the defaults, whatever the servers' app says."""
    audit = "for ever" if kept.audit_retention is None else span(kept.audit_retention)
    executions, letters = span(kept.execution_retention), span(kept.dead_letter_retention)
    return f"executions {executions} (or their train's retention), resolved dead letters {letters}, the audit {audit}"


async def _forget(app: Interlock, intent: Intent) -> Forgotten:
    database = await app.adatabase()
    retention = app.retention(database)
    if intent.dry_run:
        return await retention.rehearse(COUNTED_UP_TO)
    return await forget_history(database, retention, Actor(intent.actor, ADMIN, "cli"), intent.note)


def _show(forgotten: Forgotten, verb: str, ages: str) -> None:
    click.echo(f"{'' if forgotten else 'nothing is old enough to go; '}kept: {ages}", err=True)
    if not forgotten:
        return
    rows = [(_WORDS[kind], _count(kind, count)) for kind, count in forgotten.rows.items()]
    rows += [(f"  of them of {train}", str(count)) for train, count in sorted(forgotten.trains.items())]
    show_table(("rows", verb), sorted(rows, key=lambda row: row[0].startswith(" ")))


def _count(kind: str, count: int) -> str:
    return f"{count} or more" if kind not in {"trains", "groups"} and count == COUNTED_UP_TO else str(count)
