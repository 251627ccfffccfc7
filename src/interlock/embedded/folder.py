"""The folder of one embedded server, and what lies in it.

data/     the database cluster            socket/   the unix socket (or a short folder elsewhere)
state     port and password, 0600         log       what PostgreSQL says
admin     locked to start, adopt, stop    users     locked by everybody who uses the server
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.embedded.accounts import account, owner_of
from interlock.embedded.home import short_hash
from interlock.errors import FolderTaken, FolderUnreachable

if TYPE_CHECKING:
    from interlock.embedded.accounts import Account

SOCKET_PATH_LIMIT = 107
LONGEST_SOCKET_NAME = ".s.PGSQL.65535"
DRAFT_PREFIX = "draft-"
A_MOMENT = 1.0  # seconds in which a rival opens what a strict umask has closed


@dataclass(frozen=True)
class ServerFolder:
    path: Path

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def admin(self) -> Path:
        return self.path / "admin"

    @property
    def users(self) -> Path:
        return self.path / "users"

    @property
    def socket(self) -> Path:
        """Inside, unless the path of the socket would be longer than the operating system allows."""
        inside = self.path / "socket"
        if len(os.fsencode(inside / LONGEST_SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
            return inside
        return Path(tempfile.gettempdir()) / f"interlock-{os.geteuid()}-{short_hash(self.path)}"

    def runner(self) -> Account | None:
        """Who runs the server: the account that owns the data already, if there are any."""
        chosen = account()
        return owner_of(self.data) if chosen is not None and self.data.exists() else chosen

    def claim(self) -> None:
        """Make the folder ours, or say why it cannot be."""
        if self.path.exists() and not self.path.is_dir():
            raise FolderTaken(folder=str(self.path), problem="a file is in its place")
        self._refuse_an_unreachable()
        make_folders(self.path.parent)
        if not self.path.exists():
            _make(self.path, 0o711 if account() else 0o700)
        self._refuse_a_strangers()
        self.admin.touch(mode=0o600)

    def make_private(self, place: Path) -> None:
        """A folder for the server alone, 0700 and its own."""
        if not place.exists():
            _make(place, 0o700)
            if (runner := self.runner()) is not None:
                os.chown(place, runner.uid, runner.gid)

    def make_socket_folder(self) -> None:
        if self.socket.parent != self.path:
            self._refuse_a_strangers_sockets()
        self.make_private(self.socket)

    def remove_drafts(self) -> None:
        """What a killed first start left behind."""
        for draft in self.path.glob(f"{DRAFT_PREFIX}*"):
            shutil.rmtree(draft, ignore_errors=True)

    def _refuse_a_strangers(self) -> None:
        owner = self.path.stat().st_uid
        if owner != os.geteuid():
            raise FolderTaken(folder=str(self.path), problem=f"it belongs to {owner_of(self.path).name!r}")
        names = os.listdir(self.path)  # noqa: PTH208  one look: `admin` is made first, by us or by a rival this instant
        if names and self.admin.name not in names:
            raise FolderTaken(folder=str(self.path), problem="it holds files of something else; choose an empty folder")

    def _refuse_an_unreachable(self) -> None:
        """What is not there yet will be open to it, since we make it; what a rival has just made, in a moment."""
        runner, deadline = self.runner(), time.monotonic() + A_MOMENT
        while runner is not None and not runner.can_reach(self._nearest):
            if time.monotonic() > deadline:
                raise FolderUnreachable(folder=str(self.path), account=runner.name)
            time.sleep(0.005)

    @property
    def _nearest(self) -> Path:
        """The folder, or the last one on the way to it that is there."""
        return next(place for place in (self.path, *self.path.parents) if place.is_dir())

    def _refuse_a_strangers_sockets(self) -> None:
        """Anybody can make a folder of a foreseeable name among temporary files."""
        try:
            found = self.socket.lstat()
        except FileNotFoundError:
            return
        runner = self.runner()
        owner = os.geteuid() if runner is None else runner.uid
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            raise FolderTaken(folder=str(self.socket), problem="it was not made for this server; remove it")


def make_folders(path: Path) -> None:
    """Make what is missing on the way; folders that exist keep their modes and owners."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        _make(place, 0o755 if account() else 0o700)


def _make(place: Path, mode: int) -> None:
    try:
        place.mkdir(mode=mode)  # at once, because a rival that starts now looks whether it can be reached
    except FileExistsError:
        if not place.is_dir():
            raise
    else:
        place.chmod(mode)  # whatever the umask left of it
