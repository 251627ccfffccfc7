from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from interlock.cli.options import CONTEXT, NounGroup, root_options

if TYPE_CHECKING:
    from typing import Any

_COMMANDS = {
    "audit": "See who did what.",
    "config": "Show every setting and where it came from.",
    "dead-letters": "See what failed beyond its attempts, and decide.",
    "demo": "Watch a small fleet work, lose a server and recover, on a database of its own.",
    "dev": "Run a file's app and start it anew whenever the file changes.",
    "doctor": "Find what is wrong with the database, the fleet and the settings.",
    "dsn": "Print the address of the database, for psql and other tools.",
    "enqueue": "Queue a run of a train, with arguments typed by its schema.",
    "executions": "See what runs and ran, cancel it, and run it again.",
    "explain": "Say why something does not run, and what helps.",
    "groups": "See and set caps, priorities and switches of manifest groups.",
    "health": "Say by the exit code whether the fleet works.",
    "locks": "See who holds which slot, and take one away.",
    "manifests": "See what is scheduled, trigger it, and switch it on and off.",
    "outbox": "See what is to be delivered, and decide about what was not.",
    "pause": "Dispatch nothing more of a train, or of all.",
    "queue": "See what waits, and take it out.",
    "resume": "Take a pause back.",
    "run": "Run as a server until SIGTERM.",
    "runner": "Run only what other servers submit to it.",
    "schema": "See and change the tables of Interlock.",
    "servers": "See who runs.",
    "timers": "See what fires, where it last ran and why it was skipped.",
    "top": "Watch queue, servers and groups live.",
    "upkeep": "Delete what has served its time.",
}


class LazyGroup(NounGroup):
    """Loads a command's module when it is called, so that the others cost nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*root_options(), *self.params]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"interlock.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings=CONTEXT)
@click.version_option(package_name="interlock")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Scheduled and background work on many servers that share one PostgreSQL.

    A flag wins over its environment variable, which wins over [tool.interlock] in pyproject.toml. Data goes to
    standard output, talk to standard error.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 precondition (schema absent, too old, too new), 5 findings,
    6 timeout.
    """
    ctx.ensure_object(dict)
