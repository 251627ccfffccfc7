"""Runs one PostgreSQL for as long as anybody uses it, and stops it when nobody does.

The watchdog is the parent of the server, so a starter that is killed at any moment leaks nothing. Two files in the
folder decide: every user holds a shared record lock on byte 0 of `users`, and whoever starts or stops the server holds
`admin`. The kernel drops both with the process that held them. The watchdog itself holds byte 1 of `users`: a user that
finds it free knows that nobody watches, and starts another watchdog, which adopts a server that still runs.

This file is executed by its path and needs the standard library alone: a start pays for nothing else, and any
interpreter at hand will do.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

USER_BYTE, WATCHDOG_BYTE = 0, 1
READY, FAILED, TAKEN = b"ready", b"failed", b"taken"

POLL_SECONDS = 0.25
STARTING_POLL_SECONDS = 0.005
START_SECONDS = 120.0
# One command after the other should find the server still warm.
LINGER_SECONDS = 1.5
RESTART_PAUSE_SECONDS = 0.5
LOG_LIMIT_BYTES = 10_000_000
# Where programs and their libraries lie, and where temporary files go.
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "TMPDIR")
# All three fit, with the linger, into the five seconds in which a forgotten server must be gone.
STOP_STEPS = ((signal.SIGINT, 2.0), (signal.SIGQUIT, 0.6), (signal.SIGKILL, 0.5))
# What a killed postmaster's backends answer until they notice that it is gone.
STILL_ENDING = b"pre-existing shared memory block"


def open_lock_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(fd: int, byte: int = 0, *, shared: bool = False) -> bool:
    """Take a record lock if it is free; record locks, unlike flock, do not live on in a forked child."""
    try:
        fcntl.lockf(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


def unlock(fd: int, byte: int = 0) -> None:
    fcntl.lockf(fd, fcntl.LOCK_UN, 1, byte)


def postmaster_lines(data: str) -> list[str]:
    try:
        with open(os.path.join(data, "postmaster.pid"), encoding="utf-8", errors="replace") as file:  # noqa: PTH118, PTH123  pathlib would double the start-up time
            return [line.strip() for line in file]
    except (FileNotFoundError, NotADirectoryError):
        return []


def live_postmaster(data: str) -> int | None:
    """The process that serves this data folder, or nothing when its pid file is stale."""
    lines = postmaster_lines(data)
    if not lines or not lines[0].isdigit():
        return None
    pid = int(lines[0])
    return pid if _is_postmaster(pid, data) else None


def is_ready(data: str, pid: int) -> bool:
    lines = postmaster_lines(data)
    return len(lines) > 7 and lines[0] == str(pid) and lines[7] == "ready"  # noqa: PLR2004  the eighth line is the status


def postmaster_port(data: str) -> int | None:
    lines = postmaster_lines(data)
    return int(lines[3]) if len(lines) > 3 and lines[3].isdigit() else None  # noqa: PLR2004  the fourth line is the port


def _is_postmaster(pid: int, data: str) -> bool:
    program = os.path.basename(_command_of(pid).split("\0")[0])  # noqa: PTH119  see above
    if not program.startswith(("postgres", "postmaster")):
        return False
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data)  # noqa: PTH121  see above
    except OSError:
        # No /proc, or not ours to look at. Two servers on one folder would be worse than none: it counts as alive.
        return True


def _command_of(pid: int) -> str:
    if os.path.isdir("/proc/self"):  # noqa: PTH112  see above
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123  see above
            return os.fsdecode(file.read())
        return ""
    done = subprocess.run(["/bin/ps", "-o", "comm=", "-p", str(pid)], capture_output=True, check=False)
    return os.fsdecode(done.stdout).strip()


class Server:
    """The server under watch: a child, or one that an earlier watchdog left behind."""

    def __init__(self, pid: int, data: str, child: subprocess.Popen[bytes] | None = None) -> None:
        self.pid, self._data, self._child = pid, data, child

    def alive(self) -> bool:
        if self._child is not None:
            return self._child.poll() is None
        return _is_postmaster(self.pid, self._data)

    def stop(self) -> None:
        for number, seconds in STOP_STEPS:
            if not self.alive():
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            _wait_until_gone(self, seconds)


def _wait_until_gone(server: Server, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while server.alive() and time.monotonic() < deadline:
        time.sleep(0.01)


class Watchdog:
    def __init__(self, charge: dict[str, Any]) -> None:
        folder: str = charge["folder"]
        self._data, self._command, self._sockets = f"{folder}/data", charge["command"], charge["sockets"]
        self._identity: dict[str, Any] = charge["identity"]
        self._report_fd: int | None = charge["report"]
        self._users_path, self._log_path = f"{folder}/users", f"{folder}/log"
        self._users, self._admin = open_lock_file(self._users_path), open_lock_file(f"{folder}/admin")
        self._idle_since: float | None = None
        self._asked_to_stop = False

    def run(self) -> None:
        if not try_lock(self._users, WATCHDOG_BYTE):
            self._report(TAKEN)
            return
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        server = self._first_server()
        self._report(FAILED if server is None else READY)
        if server is not None:
            self._watch(server).stop()

    def _first_server(self) -> Server | None:
        server = None
        for server in self._starting_servers():
            if server.alive() and is_ready(self._data, server.pid):
                return server
        if server is not None:
            server.stop()
        return None

    def _starting_servers(self) -> Iterator[Server]:
        """The server that should become ready, again and again until it has failed or nobody waits for it."""
        deadline = time.monotonic() + START_SECONDS
        server = self._adopt() or self._launch()
        while time.monotonic() < deadline and not self._abandoned():
            yield server
            time.sleep(STARTING_POLL_SECONDS)
            if not server.alive():
                if STILL_ENDING not in self._log_tail():
                    return
                time.sleep(POLL_SECONDS)
                server = self._launch()

    def _watch(self, server: Server) -> Server:
        while not self._abandoned():
            time.sleep(POLL_SECONDS)
            if not server.alive() and not self._abandoned():
                time.sleep(RESTART_PAUSE_SECONDS)
                server = self._adopt() or self._launch()
        return server

    def _adopt(self) -> Server | None:
        pid = live_postmaster(self._data)
        return None if pid is None else Server(pid, self._data)

    def _launch(self) -> Server:
        self._clear_stale_files()
        with open(self._log_path, "ab") as log:  # noqa: PTH123  see above
            if log.tell() > LOG_LIMIT_BYTES:
                log.truncate(0)
            child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=plain_environment(),
                **self._identity,
            )
        return Server(child.pid, self._data, child)

    def _clear_stale_files(self) -> None:
        """The pid of a killed server may belong to a stranger by now, which PostgreSQL takes for a living server.

        A pid file whose process is gone stays: from it PostgreSQL finds out whether old backends still end.
        """
        lines = postmaster_lines(self._data)
        if lines and lines[0].isdigit() and _command_of(int(lines[0])):
            os.unlink(f"{self._data}/postmaster.pid")  # noqa: PTH108  see above
        with suppress(FileNotFoundError):
            for name in os.listdir(self._sockets):  # noqa: PTH208  see above
                if name.startswith(".s.PGSQL."):
                    os.unlink(f"{self._sockets}/{name}")  # noqa: PTH108  see above

    def _abandoned(self) -> bool:
        """Whether the server has to go; when nobody is left, users and starters are locked out from here on."""
        if self._asked_to_stop or self._replaced():
            return True
        if not try_lock(self._users, USER_BYTE):
            self._idle_since = None
            return False
        unlock(self._users, USER_BYTE)
        now = time.monotonic()
        self._idle_since = now if self._idle_since is None else self._idle_since
        return now - self._idle_since >= LINGER_SECONDS and self._lock_everybody_out()

    def _lock_everybody_out(self) -> bool:
        if not try_lock(self._admin):
            self._idle_since = None
            return False
        if try_lock(self._users, USER_BYTE):
            return True
        unlock(self._admin)
        return False

    def _replaced(self) -> bool:
        """Somebody removed the folder: nobody can find this server any more."""
        try:
            return not os.path.samestat(os.stat(self._users_path), os.fstat(self._users))  # noqa: PTH116  see above
        except OSError:
            return True

    def _ask_to_stop(self, *_: object) -> None:
        self._asked_to_stop = True

    def _log_tail(self) -> bytes:
        with suppress(OSError), open(self._log_path, "rb") as log:  # noqa: PTH123  see above
            log.seek(max(0, os.fstat(log.fileno()).st_size - 2000))
            return log.read()
        return b""

    def _report(self, outcome: bytes) -> None:
        if self._report_fd is not None:
            with suppress(OSError):
                os.write(self._report_fd, outcome)
            os.close(self._report_fd)
            self._report_fd = None


def plain_environment() -> dict[str, str]:
    """What a server needs of the caller's variables, which may hold secrets and PG* settings of another server.

    The log is read for known messages, so it speaks English.
    """
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, "LC_ALL": "C"}


def main() -> None:
    charge = json.loads(sys.argv[1])
    # The starter waits for this process; the one that stays must not be a child that it never asked for.
    if os.fork():
        os._exit(0)
    os.umask(0o077)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while _was_killed(_watch_in_child(charge)):
        charge["report"] = None


def _watch_in_child(charge: dict[str, Any]) -> int:
    """A watchdog of its own process, so that one that is killed is replaced, and the server never goes unwatched."""
    pid = os.fork()
    if pid == 0:
        Watchdog(charge).run()
        sys.exit()
    if charge["report"] is not None:
        os.close(charge["report"])
    return pid


def _was_killed(pid: int) -> bool:
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
