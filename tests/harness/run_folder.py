"""One short folder per test run, shared by all its processes.

pytest's own temporary folders belong to the caller alone, and PostgreSQL does not run as root: the unprivileged account
that serves instead must be able to reach its data.
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


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a share of the tests for another pytest, which owns the folder."""
    return hasattr(config, "workerinput")


def open_folder(config: pytest.Config) -> None:
    """Make the folder, or find out which one the controlling process made."""
    if is_worker(config):
        folder = config.workerinput[_KEY]
    else:
        folder = tempfile.mkdtemp(prefix="interlock-tests-")
        Path(folder).chmod(0o755)
    os.environ[VARIABLE] = folder


def hand_over(worker: object) -> None:
    worker.workerinput[_KEY] = os.environ[VARIABLE]


def path() -> Path:
    return Path(os.environ[VARIABLE])


def remove() -> None:
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)
