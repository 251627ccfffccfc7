"""Who uses a server: one entry per folder in this process, and record locks that the other processes see.

Closing any descriptor of a file drops all record locks that the process has on it. So each lock file is opened once per
process, and counted. A forked child inherits the descriptors but no locks; it forgets them and takes its own.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interlock.embedded.watchdog import USER_BYTE, WATCHDOG_BYTE, open_lock_file, try_lock, unlock
from interlock.errors import StartFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.embedded.folder import ServerFolder

ADMIN_SECONDS = 150.0
RETRY_SECONDS = 0.005


class Usage:
    """The use that this process makes of one server."""

    def __init__(self, folder: ServerFolder) -> None:
        self._folder = folder
        self._admin, self._users = open_lock_file(str(folder.admin)), open_lock_file(str(folder.users))
        self.count = 0

    @contextmanager
    def admin(self) -> Iterator[None]:
        """While nobody else starts, adopts or stops the server."""
        self._wait_for(self._admin, 0, shared=False)
        try:
            yield
        finally:
            unlock(self._admin)

    def share(self) -> None:
        """Be a user; the server stays for as long as this process does, or until `close`."""
        self._wait_for(self._users, USER_BYTE, shared=True)

    def is_watched(self) -> bool:
        if not try_lock(self._users, WATCHDOG_BYTE, shared=True):
            return True
        unlock(self._users, WATCHDOG_BYTE)
        return False

    def is_current(self) -> bool:
        """Whether the lock files are still those that others find in the folder."""
        try:
            return os.path.samestat(self._folder.users.stat(), os.fstat(self._users))
        except OSError:
            return False

    def close(self) -> None:
        os.close(self._admin)
        os.close(self._users)

    def _wait_for(self, fd: int, byte: int, *, shared: bool) -> None:
        deadline = time.monotonic() + ADMIN_SECONDS
        while not try_lock(fd, byte, shared=shared):
            if time.monotonic() > deadline:
                raise StartFailed(folder=str(self._folder.path), log="another process has been starting or stopping it")
            time.sleep(RETRY_SECONDS)


_usages: dict[ServerFolder, Usage] = {}
mutex = threading.RLock()


def usage_of(folder: ServerFolder) -> Usage:
    """The one entry of this process for the folder; call it, and what it answers, under the mutex."""
    found = _usages.get(folder)
    if found is not None and not found.is_current():
        _usages.pop(folder).close()
        found = None
    return found or _usages.setdefault(folder, Usage(folder))


def is_held(use: Usage | None) -> bool:
    """Not so in a forked child, nor after the folder was removed and made anew."""
    return use is not None and use in _usages.values()


def close_unused() -> None:
    """With its last use of a server, this process is no user any more."""
    for folder, use in list(_usages.items()):
        if use.count <= 0:
            _usages.pop(folder).close()


def _forget_after_fork() -> None:
    global mutex  # noqa: PLW0603  another thread of the parent may have held the inherited one
    mutex = threading.RLock()
    for inherited in _usages.values():
        inherited.close()
    _usages.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
