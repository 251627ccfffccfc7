from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from interlock.errors import InterlockError

_COMMANDS = {
    "config": "Show every setting and where it came from.",
    "demo": "Watch servers come, die and be noticed, on a database of its own.",
    "run": "Run as a server until SIGTERM.",
    "schema": "See and change the tables of Interlock.",
    "servers": "See who runs.",
}


class LazyGroup(click.Group):
    """Loads a command's module when it is called, so that the others cost nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"interlock.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-a", "--app", envvar="INTERLOCK_APP", show_envvar=True, help="The app, as module:attribute.")
@click.option("--dsn", envvar="INTERLOCK_DSN", show_envvar=True, help="The database; default: an embedded one.")
@click.option("--schema", envvar="INTERLOCK_SCHEMA", show_envvar=True, help="The schema of the tables.")
@click.option(
    "--debug", envvar="INTERLOCK_DEBUG", show_envvar=True, is_flag=True, help="Show tracebacks and debug logs."
)
@click.version_option(package_name="interlock")
@click.pass_context
def root(ctx: click.Context, /, **options: Any) -> None:
    """Scheduled and background work on many servers that share one PostgreSQL.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 precondition (schema absent, too old, too new), 5 findings,
    6 timeout.
    """
    ctx.obj = options


def run() -> None:
    """Every error is one line on stderr and the exit code of its kind; a traceback only with --debug."""
    try:
        root(prog_name="interlock")
    except InterlockError as error:
        _fail(str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001  users see one line, whatever it is
        _fail(f"{type(error).__name__}: {error}", 1)


def _fail(text: str, exit_code: int) -> None:
    if "--debug" in sys.argv or os.environ.get("INTERLOCK_DEBUG"):
        traceback.print_exc()
    click.echo(f"interlock: {text}", err=True)
    sys.exit(exit_code)
