from __future__ import annotations

import errno
from pathlib import Path

import pytest

from interlock.embedded.failures import TAIL, explained, failure_of
from interlock.errors import DiskFull, FolderTaken, PortTaken, StartFailed

FOLDER = Path("/srv")
NO_PORT = 'LOG:  could not bind IPv4 address "127.0.0.1": Address already in use'


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('FATAL:  could not write to file "pg_wal/x": No space left on device', DiskFull),
        ("initdb: error: could not write: Disk quota exceeded", DiskFull),
        ("FATAL:  could not extend file: wrote only 4096 of 8192 bytes\nHINT:  Check free disk space.", DiskFull),
        (NO_PORT, PortTaken),
        ('FATAL:  lock file "postmaster.pid" already exists', FolderTaken),
        ("FATAL:  something new", StartFailed),
        ("", StartFailed),
    ],
)
def test_what_postgresql_said_decides_the_error(said, kind):
    assert type(failure_of(FOLDER, said, 5433)) is kind


def test_an_error_carries_its_data():
    error = failure_of(FOLDER, NO_PORT, 5433)
    assert isinstance(error, PortTaken)
    assert error.port == 5433


def test_an_account_without_a_name_is_told_what_postgresql_needs():
    said = "initdb: could not look up effective user ID 12345: user does not exist"
    assert str(failure_of(FOLDER, said)).endswith("or set INTERLOCK_DSN to a server you have")


def test_a_long_log_is_cut_to_its_end():
    error = failure_of(FOLDER, "x" * 9000 + "the end")
    assert isinstance(error, StartFailed)
    assert error.log.endswith("the end")
    assert len(error.log) == TAIL


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DiskFull), (errno.EDQUOT, DiskFull), (errno.EACCES, FolderTaken), (errno.EROFS, FolderTaken)],
)
def test_errors_of_the_file_system_are_explained(number, kind):
    with pytest.raises(kind), explained(FOLDER):
        raise OSError(number, "reason", "/srv/x")
