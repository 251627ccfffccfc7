"""What every command accepts: each flag shows its environment variable, and may stand before or after the command."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.core import ParameterSource

from interlock.observe.redact import without_password

if TYPE_CHECKING:
    from collections.abc import Mapping

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

PREFIX = "INTERLOCK"
ADVISED = re.compile(r"(^|\$\(|: |, |`)interlock (?=[a-z])")
CONTEXT = {"help_option_names": ["-h", "--help"], "auto_envvar_prefix": PREFIX}


def option(*names: str, **attributes: Any) -> Decorator:
    """A flag whose help names its environment variable."""
    return click.option(*names, show_envvar=True, **attributes)


def _or_before(ctx: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001  click's signature
    """Said here, or before the command."""
    return value or bool(ctx.ensure_object(dict).get("json"))


JSON = {"envvar": "INTERLOCK_JSON", "is_flag": True, "help": "Print JSON."}
json_option = option("--json", "as_json", callback=_or_before, **JSON)


def root_options() -> list[click.Option]:
    """What may stand before any command."""
    return [*shared_options(), _shared("--json", **JSON)]


def shared_options() -> list[click.Option]:
    """Which app and which database a command is about."""
    return [
        _shared("-a", "--app", envvar="INTERLOCK_APP", help="The app, as module:attribute."),
        _shared("--dsn", envvar="INTERLOCK_DSN", help="The database; default: an embedded one."),
        _shared("--schema", envvar="INTERLOCK_SCHEMA", help="The schema of the tables."),
        _shared("--debug", envvar="INTERLOCK_DEBUG", is_flag=True, help="Show tracebacks and debug logs."),
    ]


def _shared(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, show_envvar=True, expose_value=False, callback=_remember, **attributes)


def _remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what was said; the flag nearest to the command is read last, and silence changes nothing."""
    name = str(parameter.name)
    source = ctx.get_parameter_source(name)
    if source is ParameterSource.COMMANDLINE:
        ctx.ensure_object(dict)[name] = value
    elif source is ParameterSource.ENVIRONMENT and name in {"app", "debug"}:
        # The settings read the other variables themselves: an argument in code wins over them, a flag does not lose.
        ctx.ensure_object(dict).setdefault(name, value)


def addressed(line: str, options: Mapping[str, Any]) -> str:
    """An advised command, or a sentence with some, with the flags of this one: about the same app and database."""
    app = options.get("app")
    flags = {
        "-a": None if app == os.environ.get("INTERLOCK_APP") else app,
        "--dsn": without_password(options["dsn"]) if options.get("dsn") else None,
        "--schema": options.get("schema"),
    }
    words = shlex.join(word for flag, value in flags.items() if value is not None for word in (flag, value))
    return ADVISED.sub(lambda found: f"{found[0]}{words} ", line) if words else line


class AppCommand(click.Command):
    """A command about an app."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


class NounGroup(click.Group):
    """The commands of one noun; a wrong one names the nearest that exists."""

    command_class = AppCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # a shell that completes a word is told no usage
            click.echo(self.get_help(ctx), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole sentences: click would cut them off at the end of the line."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(limit=1000)) for name, one in commands.items() if one])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            close = get_close_matches(args[0], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise click.UsageError(f"no such command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
