"""Run a file's app on the embedded database of its folder, and start it anew whenever a file there changes."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli import tether
from interlock.cli.options import AppCommand, json_option
from interlock.settings import variable

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

LOOK = 0.2
SETTLES_WITHIN = "2s"
PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})

Seen = dict[str, int]


@click.command(name="dev", cls=AppCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path))
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, file: Path, as_json: bool) -> None:
    """Run the app of FILE with all roles and print one line per event; a change of a .py file starts it anew.

    The database is the embedded one of this folder, whatever the app or the environment names, unless --dsn says
    otherwise. A file that cannot be loaded is waited for.
    """
    words = (["json"] if as_json else []) + (["debug"] if options.get("debug") else [])
    with _database(options.get("dsn")) as dsn:
        Dev(file, dsn, words).watch()


@contextmanager
def _database(dsn: str | None) -> Iterator[str]:
    """Held here, so that it goes on while the app is started anew."""
    if dsn is not None:
        yield dsn
        return
    from interlock.embedded import EmbeddedServer
    from interlock.runtime.app_database import embedded_folder

    with EmbeddedServer(embedded_folder()) as server:
        yield server.start()


class Dev:
    def __init__(self, file: Path, dsn: str, words: list[str]) -> None:
        self._file, self._dsn, self._arguments = file, dsn, [str(file), *words]
        self._over = threading.Event()

    def watch(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._over.set())
        seen = look(self._file)
        process = self._start()
        try:
            while not self._over.wait(LOOK):
                found = look(self._file)
                if found != seen:
                    self._say(f"{_changed(seen, found)} changed: starting anew")
                    seen = found
                    tether.end(process)
                    process = self._start()
                elif process.stdin is not None and not process.stdin.closed and process.poll() is not None:
                    self._say(f"it ended with {tether.reap(process)}; waiting for a change")
        finally:
            tether.end(process)

    def _start(self) -> subprocess.Popen[bytes]:
        # Compiled files are found by the second of a change, and two changes may fall into one.
        ours = {variable("shutdown_timeout"): SETTLES_WITHIN, "PYTHONDONTWRITEBYTECODE": "1"}
        # Not as an argument: everybody on the machine can read those, and it holds a password.
        environment = ours | dict(os.environ) | {variable("dsn"): self._dsn}
        return tether.start("interlock.cli.dev_server", self._arguments, env=environment)

    def _say(self, text: str) -> None:
        click.echo(f"interlock dev: {text}", err=True)


def look(file: Path) -> Seen:
    """When the Python files beside and below this one were last changed."""
    seen: Seen = {}
    for folder, folders, files in os.walk(file.parent):
        folders[:] = [name for name in folders if name not in PASSED_OVER and not _is_foreign(Path(folder, name))]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(folder, name)  # noqa: PTH118  thousands of them, several times a second
                try:
                    seen[path] = os.stat(path).st_mtime_ns  # noqa: PTH116  as above
                except OSError:
                    continue
    return seen


def _is_foreign(folder: Path) -> bool:
    return folder.name.startswith(".") or (folder / "pyvenv.cfg").exists()


def _changed(before: Seen, after: Seen) -> str:
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return Path(paths[0]).name + more
