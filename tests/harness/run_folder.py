"""One short folder per test run, shared by all its processes.

pytest's own temporary folders belong to the caller alone, and PostgreSQL does not run as root: the unprivileged account
that serves instead must be able to reach its data. The run holds a lock in its folder, so that the next run can tell
what a killed one left behind, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_KEY = "interlock_run_folder"
VARIABLE = "INTERLOCK_TEST_RUN_FOLDER"
_PREFIX = "interlock-tests-"
_ALIVE = "alive"
_locks: list[int] = []


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a share of the tests for another pytest, which owns the folder."""
    return hasattr(config, "workerinput")


def open_folder(config: pytest.Config) -> None:
    """Make the folder, or find out which one the controlling process made."""
    if is_worker(config):
        folder = config.workerinput[_KEY]
    else:
        _remove_abandoned()
        folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        _locks.append(os.open(Path(folder) / _ALIVE, os.O_RDWR | os.O_CREAT))
        fcntl.lockf(_locks[-1], fcntl.LOCK_EX)
        Path(folder).chmod(0o755)
    os.environ[VARIABLE] = folder


def hand_over(worker: object) -> None:
    worker.workerinput[_KEY] = os.environ[VARIABLE]


def path() -> Path:
    return Path(os.environ[VARIABLE])


def remove() -> None:
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and (not _exists(int(owner)) or _is_unlocked(folder / _ALIVE)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_unlocked(alive: Path) -> bool:
    """Whether the run is over though its process number is in use again; a run that just begins has no file yet."""
    try:
        with alive.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
