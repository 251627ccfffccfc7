"""The child of `interlock dev`: the app of one file, with all roles, until it is told to end."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from interlock.app import Interlock
from interlock.cli.tether import end_with_the_parent
from interlock.errors import AppNotFound, InterlockError
from interlock.observe.logs import LogSubscriber, configure_logging
from interlock.observe.redact import without_password
from interlock.settings import variable

if TYPE_CHECKING:
    from types import TracebackType

BROKEN = 3
"""The exit code that says: the file has to change before another start makes sense."""


def main(file: str, *words: str) -> None:
    end_with_the_parent()
    configure_logging(sys.stdout, "DEBUG" if "debug" in words else "INFO", "json" if "json" in words else "human")
    try:
        app = load_file(Path(file))
    except BaseException as error:  # noqa: BLE001  whatever a file may raise, SystemExit included, is shown
        _show(error, Path(file))
        sys.exit(BROKEN)
    app.settings = replace(app.settings, store=replace(app.settings.store, dsn=os.environ[variable("dsn")]))
    app.events.subscribe(LogSubscriber())
    try:
        supervisor = app.run()
    except InterlockError as error:
        click.echo(f"interlock: {without_password(str(error))}", err=True)
        sys.exit(BROKEN)
    if supervisor.forced:
        os._exit(1)  # a body that ignores its cancellation must not keep the process


def load_file(file: Path) -> Interlock:
    """The app of a file: the one called `app`, or the only one."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise AppNotFound(found=str(file), problem="it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    apps = {name: value for name, value in vars(module).items() if isinstance(value, Interlock)}
    if "app" in apps:
        return apps["app"]
    if len(set(map(id, apps.values()))) != 1:
        found = ", ".join(sorted(apps)) or "none"
        problem = f"it must hold one Interlock app, or one called app; there is {found}"
        raise AppNotFound(found=str(file), problem=problem, advice="write one: app = Interlock()")
    return next(iter(apps.values()))


def _show(error: BaseException, file: Path) -> None:
    """What is wrong with the file, without our own part of the traceback."""
    if isinstance(error, InterlockError):
        click.echo(f"interlock: {error}", err=True)
        return
    lines = traceback.format_exception(type(error), error, _from(error.__traceback__, file))
    click.echo(without_password("".join(lines)).rstrip(), err=True)


def _from(trace: TracebackType | None, file: Path) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename != str(file):
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    main(*sys.argv[1:])
