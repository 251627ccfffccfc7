from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.acting import changing, destructive, refuse_to_ask_nobody
from interlock.cli.client import CURSOR, DURATION, LARGEST_ID, LIMIT, Amount, Number, with_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import show_json, show_table
from interlock.cli.records import show_fields
from interlock.model.act import Actor
from interlock.model.lifecycle import OutboxState
from interlock.outbox.publish import checked_topic

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.app import Interlock
    from interlock.cli.acting import Intent
    from interlock.model.message import MessageDetail

FINDINGS = 5
_COLUMNS = ("id", "message id", "topic", "key", "state", "attempts", "crashes", "available at", "failure", "error")
_SPARE = ("message id", "crashes", "failure")
_STATS = ("topic", "ready", "oldest", "later", "claimed", "retrying", "dead", "needs review", "parked", "breaker")


@click.group(name="outbox", cls=NounGroup)
def command() -> None:
    """See what is to be delivered, and decide about what was not."""


@command.command(name="list")
@option("--state", type=click.Choice([state.value for state in OutboxState]), help="Only those in this state.")
@option("--topic", help="Only those of this topic.")
@option("--before", type=CURSOR, help="Only those before this number: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_messages(options: dict[str, Any], /, *, as_json: bool, **wanted: Any) -> None:
    """Messages, the newest first."""
    rows = with_app(options, lambda app: app.outbox.alist(**wanted))
    if as_json:
        show_json([row._asdict() | {"id": str(row.id)} for row in rows])
    elif not rows:
        click.echo("no message is like that", err=True)
    else:
        cells = [
            (
                row.id,
                row.message_id,
                row.topic,
                row.key,
                row.state,
                row.attempts,
                row.crashes,
                row.available_at,
                row.failure,
                row.error_message,
            )
            for row in rows
        ]
        show_table(_COLUMNS, cells, spare=_SPARE)


@command.command(name="show")
@click.argument("message")
@json_option
@click.pass_obj
def show_message(options: dict[str, Any], *, message: str, as_json: bool) -> None:
    """One message, by its number or its message id, with the attempts that did not simply deliver."""
    found = with_app(options, lambda app: app.outbox.aget(_number_or_id(message)))
    if as_json:
        show_json(_detail(found))
        return
    show_fields(_detail(found) | {"history": None})
    if found.history:
        columns = ("attempt", "outcome", "ended at", "server", "error", "retry at")
        show_table(
            columns,
            [(a.attempt, a.outcome, a.ended_at, a.host, a.error_message, a.retry_at) for a in found.history],
        )


@command.command(name="redrive")
@click.argument("messages", nargs=-1)
@option("--topic", help="All dead messages of this topic.")
@option("--failure", help="All that failed so, such as max_attempts or crash_loop.")
@option("--all", "everything", is_flag=True, help="All dead messages, and those that need review.")
@option("--rate", type=Amount(min=0, min_open=True), help="So many become due per second.")
@option("--limit", type=LIMIT, default=10_000, help="How many at most.")
@destructive
@json_option
@click.pass_obj
def redrive(
    options: dict[str, Any], /, *, messages: tuple[str, ...], intent: Intent, as_json: bool, **choice: Any
) -> None:
    """Let dead messages be delivered again: by number or id, topic or failure, or all. Stop extra workers first."""
    if not (messages or choice["topic"] or choice["failure"] or choice["everything"]):
        raise click.UsageError("nothing was chosen: name messages, a --topic or a --failure, or --all")
    if not (intent.yes or intent.dry_run):
        refuse_to_ask_nobody()
        click.confirm("messages may be delivered a second time; redrive?", abort=True, err=True)

    async def act(app: Interlock) -> dict[int, bool]:
        said: dict[str, Any] = {"actor": _by(intent), "note": intent.note, "dry_run": intent.dry_run}
        named = [_number_or_id(message) for message in messages]
        for message in named:
            await app.outbox.aget(message)  # refuses one that does not exist, before any other is redriven
        return await app.outbox.aredrive(*named, **choice, **said)

    redriven = with_app(options, act)
    if as_json:
        show_json(intent.answer("redrive", "outbox", messages=[str(number) for number in redriven]))
    else:
        late = sum(redriven.values())
        verb = intent.words("redrove", "redrive")
        many = "message" if len(redriven) == 1 else "messages"
        click.echo(f"{verb} {len(redriven)} {many}, {late} of them out of order")


def _by(intent: Intent) -> Actor:
    return Actor(intent.actor, via="cli")


def _park(options: dict[str, Any], topic: str, intent: Intent, *, parked: bool, as_json: bool) -> None:
    verb = "park" if parked else "unpark"

    async def act(app: Interlock) -> bool:
        if intent.dry_run:
            checked_topic(topic)
            return parked is not any(one.parked for one in await app.outbox.astats() if one.topic == topic)
        return await app.outbox.apark(topic, actor=_by(intent), parked=parked, note=intent.note)

    changed = with_app(options, act)
    if as_json:
        show_json(intent.answer(verb, topic, changed=changed))
    else:
        click.echo(f"{intent.words(f'{verb}ed', verb)} {topic}" if changed else f"{topic} was {verb}ed already")


@command.command(name="park")
@click.argument("topic")
@changing
@json_option
@click.pass_obj
def park(options: dict[str, Any], *, topic: str, intent: Intent, as_json: bool) -> None:
    """Deliver nothing of a topic until it is unparked; publishing goes on."""
    _park(options, topic, intent, parked=True, as_json=as_json)


@command.command(name="unpark")
@click.argument("topic")
@changing
@json_option
@click.pass_obj
def unpark(options: dict[str, Any], *, topic: str, intent: Intent, as_json: bool) -> None:
    """Deliver a parked topic again."""
    _park(options, topic, intent, parked=False, as_json=as_json)


@command.command(name="stats")
@json_option
@click.pass_obj
def stats(options: dict[str, Any], *, as_json: bool) -> None:
    """How each topic is doing; counts stop at a thousand."""
    topics = with_app(options, lambda app: app.outbox.astats())
    if as_json:
        show_json([each._asdict() for each in topics])
    elif not topics:
        click.echo("nothing waits, and nothing is dead", err=True)
    else:
        show_table(_STATS, [(*each[:8], each.parked_by if each.parked else None, each.breaker) for each in topics])


@command.command(name="doctor")
@option("--expect", type=Number(min=0), help="How many workers should serve each partition.")
@option("--window", type=DURATION, default="1h", help="How far back to look.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, expect: int | None, window: timedelta, as_json: bool) -> None:
    """Look for signs of too many workers, double deliveries and receivers in trouble; exit code 5 if there are any."""
    findings = with_app(ctx.obj, lambda app: app.outbox.adoctor(expected_workers=expect, window=window))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    elif findings:
        show_table(("check", "found", "what to do"), [(each.check, each.found, each.advice) for each in findings])
    else:
        click.echo("nothing looks wrong", err=True)
    if findings:
        ctx.exit(FINDINGS)


def _number_or_id(text: str) -> int | str:
    """What looks like a number is one; a message id of digits alone can be found by its number in the list."""
    return int(text) if text.isdecimal() and int(text) <= LARGEST_ID else text


def _detail(found: MessageDetail) -> dict[str, Any]:
    history = [attempt._asdict() for attempt in found.history]
    shown = found.row._asdict() | {"id": str(found.row.id), "payload": found.payload, "headers": found.headers}
    return shown | {"trace": found.trace, "history": history}
