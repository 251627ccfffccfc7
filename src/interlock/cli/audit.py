from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interlock.cli.client import ID, LIMIT, with_app
from interlock.cli.options import NounGroup, json_option, option
from interlock.cli.output import json_text
from interlock.cli.records import show_page

if TYPE_CHECKING:
    from interlock.model.reading import AuditLine

_COLUMNS = ("id", "at", "actor", "via", "action", "target", "before", "after", "note")
_SPARE = ("via", "before")
_KINDS = ("manifest", "group", "train", "execution", "entry", "dead_letter", "lock", "message", "topic", "history")


@click.group(name="audit", cls=NounGroup)
def command() -> None:
    """See who did what."""


@command.command(name="list")
@option("--target-kind", type=click.Choice(_KINDS), help="Only acts on these.")
@option("--target", help="Only acts on this name or number.")
@option("--by", "actor", help="Only acts of this actor.")
@option("--action", help="Only this verb, such as disable or cancel.")
@option("--before", type=ID, help="Only acts before this one: the next page.")
@option("--limit", type=LIMIT, default=50, help="How many at most.")
@json_option
@click.pass_obj
def list_acts(options: dict[str, Any], /, *, as_json: bool, **wanted: Any) -> None:
    """Acts of people and of code that acts like one, the latest first."""
    page = with_app(options, lambda app: app.views.audit(counted=not as_json, **wanted))
    show_page(page, _COLUMNS, _cells, as_json=as_json, nothing="nobody did anything", cursor="--before", spare=_SPARE)


def _cells(line: AuditLine) -> tuple[Any, ...]:
    target = f"{line.target_kind} {line.target}"
    before, after = (None if value is None else json_text(value) for value in (line.before, line.after))
    return line.id, line.at, line.actor, line.via, line.action, target, before, after, line.note
