from __future__ import annotations

import asyncio
import getpass
import sys
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.errors import InvalidOption, UnknownLockHolder

if TYPE_CHECKING:
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
    holders = asyncio.run(_holders(options, name))
    if as_json:
        show_json([_record(holder) for holder in holders])
    elif not holders:
        click.echo("nobody holds a slot", err=True)
    else:
        show_table(_COLUMNS, [_cells(holder) for holder in holders])


@command.command(name="release")
@click.argument("name")
@click.argument("slot", type=click.IntRange(min=0), default=0)
@option("--actor", envvar="INTERLOCK_ACTOR", help="Who does it; default: the user of this terminal.")
@option("--yes", envvar="INTERLOCK_YES", is_flag=True, help="Do not ask.")
@option("--dry-run", envvar="INTERLOCK_DRY_RUN", is_flag=True, help="Only say what would be done.")
@json_option
@click.pass_obj
def release_slot(
    options: dict[str, Any], *, name: str, slot: int, actor: str | None, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Take a slot away from whoever holds it; its holder is told with its next renewal."""
    holder = next((each for each in asyncio.run(_holders(options, name)) if each.slot == slot), None)
    if holder is None:
        raise UnknownLockHolder(name=f"{name} slot {slot}")
    if not dry_run:
        _confirm(holder, yes=yes)
        holder = asyncio.run(_release(options, name, slot, actor or getpass.getuser()))
    if as_json:
        show_json(None if holder is None else _record(holder))
    elif holder is not None:
        verb = "would take" if dry_run else "took"
        click.echo(f"{verb} slot {slot} of {name} from {holder.owner} (fence {holder.fence})")


def _confirm(holder: Holder, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOption(option="--yes", found=False, expected="the flag, where nobody can be asked")
    click.confirm(f"{holder.owner} may still be at work in slot {holder.slot} of {holder.name}; take it?", abort=True)


async def _holders(options: dict[str, Any], name: str | None) -> list[Holder]:
    app = choose_app(options)
    async with app:
        return await app.locks.aholders(name)


async def _release(options: dict[str, Any], name: str, slot: int, actor: str) -> Holder | None:
    app = choose_app(options)
    async with app:
        return await app.locks.aforce_release(name, slot, actor=actor)


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
