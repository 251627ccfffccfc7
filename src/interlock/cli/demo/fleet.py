"""The servers of the demo, each a process that ends with the demo, however that ends."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import click

from interlock.cli import tether
from interlock.settings import variable

if TYPE_CHECKING:
    from pathlib import Path


class Fleet:
    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn, self.folder = dsn, folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        chosen = {variable("dsn"): self._dsn, variable("server_name"): name}
        with self._log(name).open("ab") as log:
            self._processes[name] = tether.start(
                "interlock.cli.demo.server",
                env=os.environ | chosen,
                cwd=self.folder,
                output=subprocess.DEVNULL,
                errors=log,
            )

    def kill(self, name: str) -> None:
        """Without a goodbye, as a power cut would."""
        process = self._processes.pop(name)
        process.kill()
        tether.reap(process)

    def check(self) -> None:
        """Fail with its last words when a server ended that nobody killed."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                lines = self._log(name).read_text("utf-8", "replace").strip().splitlines()
                raise click.ClickException(
                    f"{name} ended with {process.returncode}: {lines[-1] if lines else 'silent'}"
                )

    def end(self) -> None:
        """All at once, then each is waited for."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            tether.reap(process)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
