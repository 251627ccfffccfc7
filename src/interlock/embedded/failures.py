"""Turns what the operating system and PostgreSQL say of a failed start into an error that says what to do."""

from __future__ import annotations

import errno
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interlock.errors import DiskFull, FolderTaken, PortTaken, StartFailed, WrongBinaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interlock.errors import EmbeddedError

TAIL = 2000
FULL = (errno.ENOSPC, errno.EDQUOT)
# The last is the hint of PostgreSQL where only a part of a page could be written.
FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "Check free disk space")
VERSIONS = re.compile(r"initialized by PostgreSQL version (\d+).*not compatible with this version (\d+)")
PORT_TEXTS = ("Address already in use", "could not bind IPv4 address")
NAMELESS = "could not look up effective user ID"
NAME_NEEDED = (
    "PostgreSQL needs an account that has a name: give this one an entry in /etc/passwd,"
    " or set INTERLOCK_DSN to a server you have"
)


def failure_of(folder: Path, said: str, port: int = 0) -> EmbeddedError:
    """The error that fits what PostgreSQL said before it ended."""
    if any(text in said for text in FULL_TEXTS):
        return DiskFull(folder=str(folder))
    if any(text in said for text in PORT_TEXTS):
        return PortTaken(port=port)
    if "lock file" in said and "already exists" in said:
        return FolderTaken(folder=str(folder), problem="another PostgreSQL server uses its data")
    if versions := VERSIONS.search(said):
        return WrongBinaries(folder=str(folder), found=int(versions[2]), needed=versions[1])
    log = said[-TAIL:].strip()
    return StartFailed(folder=str(folder), log=f"{log}\n{NAME_NEEDED}" if NAMELESS in said else log)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """An error of the file system, in the words of whoever chose the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(folder=str(folder)) from error
        problem = f"{error.strerror}: {error.filename}; set INTERLOCK_HOME to a folder that can be written to"
        raise FolderTaken(folder=str(folder), problem=problem) from error
