from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, changing, destructive
from interlock.cli.client import with_app
from interlock.cli.options import AppCommand, json_option
from interlock.cli.output import show_json
from interlock.model.work import ALL_TRAINS

if TYPE_CHECKING:
    from interlock.app import Interlock
    from interlock.cli.acting import Intent


@click.command(name="pause", cls=AppCommand)
@click.argument("train", required=False, shell_complete=completion.trains)
@destructive
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, train: str | None, intent: Intent, as_json: bool) -> None:
    """Dispatch nothing more of a train, or of all; what runs goes on."""
    name = _named(options, train)
    changed = act(
        options, intent, lambda commands: commands.pause(name), None if train else lambda _: "pause all trains?"
    )
    _tell(intent, "pause", name, train, changed=changed, otherwise="paused already", as_json=as_json)


@click.command(name="resume", cls=AppCommand)
@click.argument("train", required=False, shell_complete=completion.trains)
@changing
@json_option
@click.pass_obj
def resume(options: dict[str, Any], *, train: str | None, intent: Intent, as_json: bool) -> None:
    """Take a pause back: that of a train, or that of all."""
    name = _named(options, train)
    changed = act(options, intent, lambda commands: commands.resume(name))
    _tell(intent, "resume", name, train, changed=changed, otherwise="not paused", as_json=as_json)


def _named(options: dict[str, Any], train: str | None) -> str:
    """The train that is meant; a name that nobody knows is more likely a mistake than a plan."""
    if train is None:
        return ALL_TRAINS

    async def find(app: Interlock) -> str:
        return (await app.views.train(train, app.trains)).name

    return with_app(options, find)


def _tell(
    intent: Intent, verb: str, name: str, train: str | None, *, changed: bool, otherwise: str, as_json: bool
) -> None:
    what = "all trains" if train is None else train
    if as_json:
        show_json(intent.answer(verb, name, changed=changed))
    elif changed:
        click.echo(intent.words(f"{verb}d {what}", f"{verb} {what}"))
    else:
        click.echo(f"{what}: {otherwise}; nothing was changed")
