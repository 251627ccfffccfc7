from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Interlock = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def interlock(tmp_path) -> Interlock:
    """Runs the command line in an empty folder, with no settings but those of the test."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "interlock", *arguments],
            env=clean_environment() | {"INTERLOCK_HOME": str(tmp_path / "home")} | (env or {}),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run


def clean_environment() -> dict[str, str]:
    ours = ("INTERLOCK_", "DATABASE_URL", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "LC_", "LANG")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture
def refused(interlock) -> Callable[..., str]:
    """Runs a command that must fail with this exit code, in one line on stderr and without a traceback."""

    def run(exit_code: int, *arguments: str, env: dict[str, str] | None = None) -> str:
        done = interlock(*arguments, env=env)
        assert (done.returncode, done.stdout) == (exit_code, ""), done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith("interlock: ")
        return line.removeprefix("interlock: ")

    return run
