"""The account that PostgreSQL runs under: it refuses to run as root."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidSetting

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    def identity(self) -> dict[str, Any]:
        """The arguments of Popen that make a child run as this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_reach(self, path: Path) -> bool:
        """Whether the account may pass through every folder on the way, and through or into the path itself."""
        real = path.resolve()
        return all(self._may_pass(place) for place in (real, *real.parents))

    def _may_pass(self, place: Path) -> bool:
        found = place.stat()
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        return bool(found.st_mode & (stat.S_IXGRP if found.st_gid == self.gid else stat.S_IXOTH))


def account() -> Account | None:
    """The unprivileged account to drop to when this process is root, else none."""
    if os.geteuid() != 0:
        return None
    if chosen := os.environ.get("INTERLOCK_EMBEDDED_USER"):
        return _known(chosen) or _refuse(chosen)
    found = next(filter(None, map(_known, CANDIDATES)), None)
    return found or Account(name="65534", uid=65534, gid=65534)


def owner_of(place: Path) -> Account:
    """The account that a folder made earlier belongs to."""
    found = place.stat()
    try:
        name = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        name = str(found.st_uid)
    return Account(name=name, uid=found.st_uid, gid=found.st_gid)


def identity_of(runner: Account | None) -> dict[str, Any]:
    return {} if runner is None else runner.identity()


def _known(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return None if entry.pw_uid == 0 else Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def _refuse(name: str) -> Account:
    raise InvalidSetting(
        setting="INTERLOCK_EMBEDDED_USER",
        found=name,
        expected="an existing account other than root",
        origin="environment",
    )
