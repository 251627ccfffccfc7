"""What holds for every command, those to come included."""

from __future__ import annotations

import click
import pytest

from interlock.cli.root import root
from interlock.settings import known_options, variable
from tests.harness.commands import contexts, leaves


def options(ctx: click.Context) -> list[click.Option]:
    return [one for one in ctx.command.params if isinstance(one, click.Option) and one.name not in {"help", "version"}]


def variable_of(option: click.Option, ctx: click.Context) -> str:
    return str(option.envvar or f"{ctx.auto_envvar_prefix}_{option.name.upper()}")


by_path = pytest.mark.parametrize("ctx", list(contexts()), ids=lambda ctx: ctx.command_path)


@pytest.mark.parametrize("ctx", leaves(), ids=lambda ctx: ctx.command_path)
def test_every_command_prints_json(ctx):
    assert "--json" in {name for option in options(ctx) for name in option.opts}


@by_path
def test_every_flag_shows_its_environment_variable_and_a_sentence_in_its_help(ctx):
    text = " ".join(ctx.command.get_help(ctx).split())
    for option in options(ctx):
        assert f"env var: {variable_of(option, ctx)}" in text
        assert option.help
        assert option.help.endswith(".")


def test_a_variable_means_one_thing():
    """The variable of a flag is not that of a setting, unless the flag sets that setting."""
    meant: dict[str, set[str]] = {}
    for ctx in contexts():
        for option in options(ctx):
            meant.setdefault(variable_of(option, ctx), set()).add(option.opts[-1])
    for name in known_options():
        meant.setdefault(variable(name), set()).add(f"--{name.replace('_', '-')}")
    assert {name: flags for name, flags in meant.items() if len(flags) > 1} == {}


@by_path
def test_every_command_says_what_it_does(ctx):
    assert ctx.command.help


def test_the_short_descriptions_name_existing_commands():
    with click.Context(root) as ctx:
        assert all(root.get_command(ctx, name) for name in root.list_commands(ctx))
