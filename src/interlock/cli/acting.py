"""What commands that change something have in common: who, why, whether it is meant, and whether to ask first."""

from __future__ import annotations

import getpass
import sys
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.cli.client import with_app
from interlock.cli.options import option
from interlock.model.act import ADMIN, Actor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.operate.commands import Commands

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Intent:
    """What the flags of a changing command say."""

    actor: str
    note: str | None
    dry_run: bool
    yes: bool

    def answer(self, action: str, target: object, **more: Any) -> dict[str, Any]:
        """The JSON form of what was done."""
        return {"action": action, "target": str(target), "dry_run": self.dry_run, **more}

    def words(self, done: str, would: str) -> str:
        return f"would {would}" if self.dry_run else done


def changing(function: Callable[..., Any]) -> Callable[..., Any]:
    """--actor, --note and --dry-run, handed over as `intent`."""
    return _with_flags(function, asks=False)


def destructive(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and --yes for what is asked otherwise."""
    return _with_flags(function, asks=True)


def act(
    options: dict[str, Any],
    intent: Intent,
    work: Callable[[Commands], Awaitable[T]],
    ask: Callable[[T], str] | None = None,
) -> T:
    """Do the work on behalf of the actor; what is asked first shows what a dry run found; no question, no deed."""

    def perform(*, dry_run: bool) -> T:
        actor = Actor(intent.actor, ADMIN, "cli")
        return with_app(options, lambda app: work(app.commands.by(actor, note=intent.note, dry_run=dry_run)))

    if intent.dry_run:
        return perform(dry_run=True)
    if ask is not None and not intent.yes:
        refuse_to_ask_nobody()
        found = perform(dry_run=True)
        question = ask(found)
        if not question:
            return found
        click.confirm(question, abort=True, err=True)
    return perform(dry_run=False)


def refuse_to_ask_nobody() -> None:
    """Where no terminal is, a question would wait for ever."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            "it asks first, and nobody can be asked here: add --yes to do it, or --dry-run to see what it would do",
            click.get_current_context(silent=True),
        )


def _with_flags(function: Callable[..., Any], *, asks: bool) -> Callable[..., Any]:
    @wraps(function)
    def command(*args: Any, actor: str | None, note: str | None, dry_run: bool, **kwargs: Any) -> Any:
        intent = Intent(actor or _user(), note, dry_run, kwargs.pop("yes", True))
        return function(*args, intent=intent, **kwargs)

    flags = [
        option("--actor", envvar="INTERLOCK_ACTOR", help="Who does it; default: the user of this terminal."),
        option("--note", envvar="INTERLOCK_NOTE", help="Why, for the audit."),
        option("--dry-run", envvar="INTERLOCK_DRY_RUN", is_flag=True, help="Only say what would be done."),
    ]
    if asks:
        flags.append(option("--yes", envvar="INTERLOCK_YES", is_flag=True, help="Do not ask."))
    decorated: Callable[..., Any] = command
    for flag in reversed(flags):
        decorated = flag(decorated)
    return decorated


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as containers have them
        return "unknown"
