"""Starts a watchdog for a server folder and waits for what it reports."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from interlock.embedded import failures, watchdog
from interlock.embedded.accounts import identity_of
from interlock.embedded.ports import LOOPBACK
from interlock.errors import StartFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from interlock.embedded.binaries import Binaries
    from interlock.embedded.folder import ServerFolder
    from interlock.embedded.usage import Usage

REPORT_SECONDS = watchdog.START_SECONDS + 10


def launch(folder: ServerFolder, binaries: Binaries, port: int, options: Mapping[str, str]) -> bool:
    """Whether the server is ready; not so if another watchdog came first. Raises what the log tells of a failure."""
    log_start = folder.log.stat().st_size if folder.log.exists() else 0
    charge = {
        "folder": str(folder.path),
        "sockets": str(folder.socket),
        "command": server_command(folder, binaries, port, options),
        "identity": identity_of(folder.runner()),
    }
    outcome = _report_of(folder, charge)
    if outcome not in (watchdog.READY, watchdog.TAKEN):
        raise failures.failure_of(folder.path, log_since(folder, log_start), port)
    return outcome == watchdog.READY


def server_command(folder: ServerFolder, binaries: Binaries, port: int, options: Mapping[str, str]) -> list[str]:
    settings = {
        "listen_addresses": LOOPBACK,
        "port": str(port),
        "unix_socket_directories": _quoted(folder.socket),
        "unix_socket_permissions": "0700",
        "max_connections": "200",
        "timezone": "UTC",
        "log_timezone": "UTC",
        **options,
    }
    return [binaries.postgres, "-D", str(folder.data), *(f"--{name}={value}" for name, value in settings.items())]


def _quoted(place: Path) -> str:
    """One folder, where PostgreSQL reads a list that is separated by commas."""
    name = str(place).replace('"', '""')
    return f'"{name}"'


def becomes_ready(folder: ServerFolder, use: Usage) -> bool:
    """Wait for a server that a watchdog is bringing up, or back; not so if nobody watches over it."""
    data, deadline = str(folder.data), time.monotonic() + REPORT_SECONDS
    while use.is_watched():
        if (pid := watchdog.live_postmaster(data)) is not None and watchdog.is_ready(data, pid):
            return True
        if time.monotonic() > deadline:
            raise failures.failure_of(folder.path, log_since(folder, 0))
        time.sleep(watchdog.STARTING_POLL_SECONDS)
    return False


def log_since(folder: ServerFolder, start: int) -> str:
    try:
        with folder.log.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(start if start <= end else 0, end - 10 * failures.TAIL))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _report_of(folder: ServerFolder, charge: Mapping[str, object]) -> bytes:
    reader, writer = os.pipe()
    try:
        try:
            _spawn(folder, {**charge, "report": writer}, writer)
        finally:
            os.close(writer)
        return os.read(reader, 100) if select.select([reader], [], [], REPORT_SECONDS)[0] else b""
    finally:
        os.close(reader)


def _spawn(folder: ServerFolder, charge: Mapping[str, object], report: int) -> None:
    with os.fdopen(os.open(folder.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as log:
        subprocess.run(
            [_interpreter(folder), "-I", "-S", watchdog.__file__, json.dumps(charge)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=watchdog.plain_environment(),
            start_new_session=True,
            pass_fds=[report],
            check=False,
        )


def _interpreter(folder: ServerFolder) -> str:
    """The running one, unless this account cannot execute it or it is a frozen program; then any other."""
    for candidate in _interpreters():
        if os.access(candidate, os.X_OK):
            return candidate
    raise StartFailed(
        folder=str(folder.path), log=f"no Python interpreter that this account can execute: {sys.executable}"
    )


def _interpreters() -> Iterator[str]:
    if sys.executable and not hasattr(sys, "frozen"):
        yield sys.executable
    yield from filter(None, map(shutil.which, ("python3", "python")))
    yield from ("/usr/bin/python3", "/usr/local/bin/python3")
