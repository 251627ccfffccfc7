from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.acting import destructive, refuse_to_ask_nobody
from interlock.cli.client import Number, in_namespace, with_app
from interlock.cli.options import NounGroup, json_option
from interlock.cli.output import show_json, show_table
from interlock.errors import UnknownLockHolder
from interlock.model.act import ADMIN, Actor

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.cli.acting import Intent
    from interlock.model.lease import Holder

_COLUMNS = ("name", "slot", "owner", "of", "fence", "held for", "expires in")


@click.group(name="locks", cls=NounGroup)
def command() -> None:
    """See who holds which slot, and take one away."""


@command.command(name="list")
@click.argument("name", required=False)
@json_option
@click.pass_obj
def list_holders(options: dict[str, Any], *, name: str | None, as_json: bool) -> None:
    """The slots that are held in the app's namespace, of one lock or of all."""
    holders, whose = with_app(options, lambda app: _holders(app, name))
    if as_json:
        show_json([_record(holder) for holder in holders])
    elif not holders:
        click.echo(f"nobody holds such a slot{whose}", err=True)
    else:
        show_table(_COLUMNS, [_cells(holder) for holder in holders])


@command.command(name="release")
@click.argument("name")
@click.argument("slot", type=Number(min=0), default=0)
@destructive
@json_option
@click.pass_obj
def release_slot(options: dict[str, Any], *, name: str, slot: int, intent: Intent, as_json: bool) -> None:
    """Take a slot away from whoever holds it; its holder is told with its next renewal."""
    held = with_app(options, lambda app: app.locks.aholders(name))
    holder = next((each for each in held if each.slot == slot), None)
    if holder is not None and not intent.dry_run:
        _confirm(holder, yes=intent.yes)
        actor = Actor(intent.actor, ADMIN, "cli")
        holder = with_app(options, lambda app: app.locks.aforce_release(name, slot, actor=actor, note=intent.note))
    if holder is None:
        raise UnknownLockHolder(name=f"{name} slot {slot}")
    if as_json:
        show_json(intent.answer("release", name, holder=_record(holder)))
    else:
        verb = intent.words("took", "take")
        click.echo(f"{verb} slot {slot} of {name} from {holder.owner} (fence {holder.fence})")


async def _holders(app: Interlock, name: str | None) -> tuple[list[Holder], str]:
    return await app.locks.aholders(name), in_namespace(app)


def _confirm(holder: Holder, *, yes: bool) -> None:
    if yes:
        return
    refuse_to_ask_nobody()
    click.confirm(f"{holder.owner} may still be at work in slot {holder.slot} of {holder.name}; take it?", abort=True)


def _cells(holder: Holder) -> tuple[Any, ...]:
    return (
        holder.name,
        holder.slot,
        holder.owner,
        holder.slots,
        holder.fence,
        holder.age,
        holder.expires_in,
    )


def _record(holder: Holder) -> dict[str, Any]:
    return {
        "name": holder.name,
        "slot": holder.slot,
        "owner": holder.owner,
        "server": holder.server,
        "slots": holder.slots,
        "fence": str(holder.fence),
        "ttl_seconds": holder.ttl,
        "acquired_at": holder.acquired_at.astimezone(UTC),
        "age_seconds": holder.age,
        "expires_in_seconds": holder.expires_in,
    }
