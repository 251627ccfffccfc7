from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.acting import act, changing
from interlock.cli.client import DURATION, Number, with_app
from interlock.cli.inputs import arg_option, edited_input, input_option, pairs
from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.output import json_text, show_json
from interlock.errors import InterlockError
from interlock.operate.wait import output_of

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.app import Interlock
    from interlock.cli.acting import Intent


@click.command(name="enqueue", cls=AppCommand)
@click.argument("train", shell_complete=completion.trains)
@arg_option
@input_option
@option("--delay", type=DURATION, help="Not before this time has passed, such as 30s, 5m or 2h.")
@option("--priority", type=Number(min=0, max=63), help="From 0 to 63; higher goes first in its group.")
@option("--key", help="While work with this key waits or runs, it is not queued a second time.")
@option("--group", help="The manifest group; default: the train's.", shell_complete=completion.groups)
@option("--wait", is_flag=True, help="Wait for its end; its success is the exit code.")
@option("--timeout", type=DURATION, help="Wait so long at most, then exit 6.")
@changing
@json_option
@click.pass_obj
def command(
    options: dict[str, Any],
    /,
    *,
    train: str,
    args: tuple[str, ...],
    json_input: str | None,
    wait: bool,
    timeout: timedelta | None,
    intent: Intent,
    as_json: bool,
    **terms: Any,
) -> None:
    """Queue a run of a train, with arguments typed by its schema."""
    if timeout is not None and not wait:
        raise click.UsageError("a --timeout bounds a wait: expected --wait with it")
    texts = pairs(args)
    arguments = with_app(options, lambda app: edited_input(app, train, {}, texts, json_input))
    entry, is_new = act(options, intent, lambda commands: commands.enqueue(train, arguments, **terms))
    number = None if intent.dry_run and is_new else str(entry)
    answer = intent.answer("enqueue", train, changed=is_new, entry_id=number, input=arguments)
    held = f"entry {entry} holds the key {terms['key']}; nothing was queued"
    if intent.dry_run or not wait:
        queued = intent.words(f"queued {train}: entry {entry}", f"queue {train}")
        _tell(answer, queued if is_new else held, as_json=as_json)
        return
    click.echo(f"entry {entry} of {train} is queued" if is_new else held, err=True)
    _tell_end(options, entry, train, timeout, answer, as_json=as_json)


def _tell_end(
    options: dict[str, Any],
    entry: int,
    train: str,
    timeout: timedelta | None,
    answer: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    async def wait(app: Interlock) -> str:
        seconds = None if timeout is None else timeout.total_seconds()
        return await output_of(await app.adatabase(), entry, train, seconds=seconds)

    try:
        output = json.loads(with_app(options, wait))
    except InterlockError as error:
        if as_json:
            show_json(answer | {"status": "timeout" if isinstance(error, TimeoutError) else "failed"})
        raise
    _tell(answer | {"status": "completed", "output": output}, json_text(output), as_json=as_json)


def _tell(answer: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
    else:
        click.echo(text)
