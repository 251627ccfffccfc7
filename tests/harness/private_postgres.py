"""A PostgreSQL that belongs to one test: durable, and made to be stopped, killed and restarted on the same port."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Literal

from interlock.embedded import account
from tests.harness import guard
from tests.harness.ports import HOST, PortTakenError, on_free_port
from tests.harness.postgres import binaries
from tests.harness.waiting import PATIENCE, eventually_blocking

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Mode = Literal["smart", "fast", "immediate"]
_SIGNALS: Mapping[Mode, int] = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_STATUS_LINE = 7  # of postmaster.pid


class PrivatePostgres:
    """`stop("immediate")` is the power cut: no checkpoint, every connection gone, recovery at the next start."""

    def __init__(self, folder: Path) -> None:
        """Create its database below the folder, every parent of which must be open to the unprivileged account."""
        self._folder, self._data = folder, folder / "data"
        self._account = account()
        self._password = secrets.token_hex(8)
        self._popen: subprocess.Popen[bytes] | None = None
        self.port = 0
        folder.parent.chmod(0o755)
        folder.mkdir()
        self._give_away(folder)
        self._initialise()

    @property
    def dsn(self) -> str:
        return f"postgresql://interlock:{self._password}@{HOST}:{self.port}/postgres"

    @property
    def is_running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    def start(self) -> None:
        """Returns when it accepts connections; the port of the first start stays."""
        if self.port:
            self._start_on(self.port)
        else:
            on_free_port(self._start_on)

    def _start_on(self, port: int) -> None:
        self.port = port
        options = {"port": self.port, "listen_addresses": HOST, "unix_socket_directories": "", "max_connections": 60}
        settings = [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._popen = subprocess.Popen(
                [binaries().postgres, "-D", self._data, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
                **self._identity(),
            )
        guard.watch(self._popen.pid)
        eventually_blocking(self._is_ready, what=f"PostgreSQL on port {self.port}")

    def stop(self, mode: Mode = "fast") -> None:
        """Returns when it is gone."""
        if self._popen is not None:
            self._popen.send_signal(_SIGNALS[mode])
            self._popen.wait(timeout=PATIENCE)
            guard.forget(self._popen.pid)
            self._popen = None

    def restart(self, mode: Mode = "fast") -> None:
        self.stop(mode)
        self.start()

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _identity(self) -> dict[str, Any]:
        return {"cwd": "/", **({} if self._account is None else self._account.identity())}

    def _give_away(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)

    def _initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self._password)
        self._give_away(secret)
        choices = [
            "--username=interlock",
            f"--pwfile={secret}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        ]
        command = [binaries().initdb, "--no-sync", *choices, "-D", self._data]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._identity())
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _is_ready(self) -> bool:
        assert self._popen is not None
        if self._popen.poll() is not None:
            guard.forget(self._popen.pid)
            problem = PortTakenError if "Address already in use" in self.log() else RuntimeError
            raise problem(f"PostgreSQL ended with {self._popen.returncode}:\n{self.log()[-4000:]}")
        pid_file = self._data / "postmaster.pid"
        lines = pid_file.read_text().splitlines() if pid_file.exists() else []
        is_ours = lines[:1] == [
            str(self._popen.pid)
        ]  # after a power cut the file of the previous server is still there
        return is_ours and len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"
