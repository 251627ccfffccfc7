"""Cancelling from the command line: shown before it is done, and counted afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli.acting import act
from interlock.cli.output import show_json
from interlock.store.cancellation import Cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.cli.acting import Intent
    from interlock.operate.commands import Commands


def cancel_each(
    options: dict[str, Any], intent: Intent, kind: str, targets: Sequence[int | str], *, as_json: bool
) -> None:
    """Cancel these executions, entries, manifests or groups, each in a transaction of its own."""

    async def cancel(commands: Commands) -> Cancelled:
        verbs: dict[str, Callable[[Any], Awaitable[Cancelled]]] = {
            "execution": commands.cancel_execution,
            "entry": commands.cancel_entry,
            "manifest": commands.cancel_manifest,
            "group": commands.cancel_group,
        }
        return _together([await verbs[kind](target) for target in targets])

    found = act(options, intent, cancel, lambda found: f"{_counted(found)}: cancel?")
    if as_json:
        answer = intent.answer("cancel", ",".join(map(str, targets)), target_kind=kind)
        parts = {"entry_ids": found.entries, "ended_ids": found.ended, "asked_to_stop_ids": found.asked}
        show_json(answer | {name: [str(one) for one in ids] for name, ids in parts.items()})
    else:
        click.echo(f"{intent.words('cancelled', 'cancel')}: {_counted(found)}")


def _together(parts: Sequence[Cancelled]) -> Cancelled:
    return Cancelled(
        entries=[one for part in parts for one in part.entries],
        ended=[one for part in parts for one in part.ended],
        asked=[one for part in parts for one in part.asked],
    )


def _counted(found: Cancelled) -> str:
    waiting = len(found.entries) + len(found.ended)
    return f"{waiting} waiting, {len(found.asked)} running (asked to stop)"
