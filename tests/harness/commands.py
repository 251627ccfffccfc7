"""Every command of the command line, asked of itself: one that is added is held to what holds for all."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import click

from interlock.cli.root import root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def contexts(
    command: click.Command = root, parent: click.Context | None = None, name: str = "interlock"
) -> Iterator[click.Context]:
    with click.Context(command, parent=parent, info_name=name, **command.context_settings) as ctx:
        yield ctx
        if isinstance(command, click.Group):
            for child in command.list_commands(ctx):
                yield from contexts(command.get_command(ctx, child), ctx, child)


def leaves() -> list[click.Context]:
    """Those that do something themselves."""
    return [ctx for ctx in contexts() if not isinstance(ctx.command, click.Group)]


def path_of(ctx: click.Context) -> str:
    return ctx.command_path.removeprefix("interlock ")


@cache
def every_path() -> frozenset[str]:
    return frozenset(path_of(ctx) for ctx in leaves())


def writing_paths() -> set[str]:
    """Those that change something on behalf of an actor, or could: they take --actor or --dry-run."""
    marks = {"--actor", "--dry-run"}
    return {path_of(ctx) for ctx in leaves() if marks & {flag for one in ctx.command.params for flag in one.opts}}


def path_in(arguments: Iterable[object]) -> str:
    """The command that a line begins with."""
    words: list[str] = []
    for word in map(str, arguments):
        words.append(word)
        if " ".join(words) in every_path():
            return " ".join(words)
    return ""
