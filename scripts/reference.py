"""Writes docs/reference/{settings,errors,cli,events}.md from the code: the same code always gives the same pages.

With --check it writes nothing, and exits 1 when a page is out of date.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

sys.path.insert(0, str(Path(__file__).parents[1]))

import click

from interlock import errors, settings
from interlock.cli.root import root
from interlock.model.setting_values import expectation, spoken
from interlock.observe import events
from interlock.observe.events.base import Event
from scripts.setting_meanings import MEANINGS, OF_THE_MACHINE, SHORTHANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Written from the code by `make docs`; edit the code instead. -->"


def pages() -> dict[str, str]:
    """Each page by its file name."""
    bodies = {"settings": _settings(), "errors": _errors(), "cli": _commands(), "events": _events()}
    return {f"{name}.md": NOTE + "\n\n" + "\n".join(body).rstrip() + "\n" for name, body in bodies.items()}


def write() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")


def outdated() -> list[str]:
    return [name for name, text in pages().items() if _read(FOLDER / name) != text]


def _read(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""


def _settings() -> Iterator[str]:
    yield from (
        "# Settings",
        "",
        "Each may be given as an argument (`Interlock(lease=timedelta(seconds=20))`), as an environment variable",
        '(`INTERLOCK_LEASE=20s`) or in `pyproject.toml` (`[tool.interlock]`, `lease = "20s"`). An argument wins over',
        "the environment, which wins over the file; a flag of the command line wins over all.",
        "`interlock config --show-origin` says what counts and why. An empty variable counts as unset; `none` switches",
        "off what may be none. A duration is a number of seconds or has a unit: `250ms`, `30s`, `5m`, `2h`, `7d`.",
    )
    if missing := settings.known_options().keys() - MEANINGS.keys():
        raise SystemExit(f"scripts/setting_meanings.py does not say what these mean: {', '.join(sorted(missing))}")
    for section, component in settings.sections().items():
        yield from ("", f"## {section.capitalize()}", "", str(inspect.getdoc(component)), "")
        yield from ("| setting | default | expects | meaning |", "|---|---|---|---|")
        kinds = get_type_hints(component)
        for each in fields(component):
            expected = expectation(kinds[each.name]).replace("|", "\\|")
            yield f"| `{each.name}` | `{_default(each.default)}` | {expected} | {MEANINGS[each.name]} |"
    yield from ("", "## Shorthands", "", "Weaker than what they stand for, inside the same source.", "")
    yield from (f"- `{name}` {meaning}" for name, meaning in SHORTHANDS.items())
    yield from (
        "",
        "## Variables of the machine",
        "",
        "Only in the environment, because they are about where and not how.",
        "",
    )
    yield from (f"- `{name}` {meaning}" for name, meaning in OF_THE_MACHINE.items())


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value in (None, ()) else str(spoken(value))


def _errors() -> Iterator[str]:
    tree = inspect.cleandoc(str(errors.__doc__)).split("\n\n")[1]
    yield from (
        "# Errors",
        "",
        "Every error that Interlock raises is an `interlock.InterlockError`; all are in `interlock.errors`. They carry",
        "their data as fields, their text says what was found and what to do, and they can be pickled.",
        "",
        "```text",
        tree,
        "```",
        "",
        "| error | fields | exit code of the command line |",
        "|---|---|---|",
    )
    for name in re.findall(r"^[│├└─ ]*(\w+)", tree, re.MULTILINE):
        kind = getattr(errors, name)
        names = ", ".join(f"`{each.name}`" for each in fields(kind)) or "-"
        yield f"| `{name}` | {names} | {kind.exit_code} |"


def _commands() -> Iterator[str]:
    yield from (
        "# Command line",
        "",
        "`interlock` and `python -m interlock` are the same. The flags of `interlock` itself may also stand after the",
        "command.",
    )
    with root.make_context("interlock", ["--"], resilient_parsing=True) as ctx:
        yield from _command(root, ctx)


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield from ("", f"## `{' '.join([ctx.command_path, *_arguments(command)])}`", "", _text(command))
    yield from _flags([one for one in command.params if command is root or one.expose_value], ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            with click.Context(child, parent=ctx, info_name=name) as inner:
                yield from _command(child, inner)


def _arguments(command: click.Command) -> Iterator[str]:
    for one in command.params:
        if isinstance(one, click.Argument):
            name = str(one.name).upper() + ("..." if one.nargs == -1 else "")
            yield name if one.required else f"[{name}]"


def _text(command: click.Command) -> str:
    return "\n".join(line.strip() for line in str(command.help).strip().splitlines())


def _flags(parameters: list[click.Parameter], ctx: click.Context) -> Iterator[str]:
    flags = [one for one in parameters if isinstance(one, click.Option) and one.name not in {"help", "version"}]
    if flags:
        yield from ("", "| flag | environment variable | meaning |", "|---|---|---|")
    for flag in flags:
        names = ", ".join(f"`{name}`" for name in flag.opts)
        variable = flag.envvar or f"{ctx.auto_envvar_prefix}_{str(flag.name).upper()}"
        yield f"| {names} | `{variable}` | {flag.help} |"


def _events() -> Iterator[str]:
    yield from (
        "# Events",
        "",
        "What Interlock says of itself: typed records that `app.events.subscribe(function)` receives and that the log",
        "is written from, on the logger `interlock.<subject>`. All are in `interlock.observe.events`.",
    )
    kinds = [kind for name in events.__all__ if (kind := getattr(events, name)).subject != Event.subject]
    for subject in sorted({kind.subject for kind in kinds}):
        yield from ("", f"## {subject}", "", "| event | level | says | fields |", "|---|---|---|---|")
        yield from (_event(kind) for kind in kinds if kind.subject == subject and _is_emitted(kind))


def _is_emitted(kind: type[Event]) -> bool:
    """A class without a sentence of its own is a base of others."""
    return bool(kind.text) or kind.sentence is not Event.sentence


def _event(kind: type[Event]) -> str:
    names = ", ".join(f"`{each.name}`" for each in fields(kind)) or "-"
    says = kind.text or str(inspect.getdoc(kind)).splitlines()[0]
    return f"| `{kind.__name__}` | {logging.getLevelName(kind.level).lower()} | {says} | {names} |"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit("; ".join(f"{name} is out of date: run make docs" for name in outdated()) or 0)
    write()
