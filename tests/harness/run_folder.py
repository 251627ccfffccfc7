"""One short folder per test run, shared by all its processes.

pytest's own temporary folders belong to the caller alone, and PostgreSQL does not run as root: the unprivileged account
that serves instead must be able to reach its data. The name carries the process id of the run, so that the next run
removes what a killed one left behind.
"""

from __future__ import annotations

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
        if owner.isdigit() and not _exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
