"""Where Interlock keeps its private databases when nobody says otherwise."""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import tempfile
from pathlib import Path

from interlock.errors import FolderTaken, InvalidSetting

ROOT_HOME = Path("/var/lib/interlock")
NAME_LENGTH = 24


def interlock_home() -> Path:
    """INTERLOCK_HOME, or the place where this account keeps its data, or a folder of its own among temporary files."""
    if chosen := os.environ.get("INTERLOCK_HOME"):
        return _expanded(chosen)
    usual = _usual_home()
    return usual if usual is not None and _can_make(usual) else _temporary_home()


def default_folder() -> Path:
    """One folder per project: it bears the name of the current folder, and a hash of its path."""
    here = Path(os.path.realpath(Path.cwd()))
    name = re.sub(r"[^a-z0-9_.-]+", "-", here.name.lower()).strip("-.")[:NAME_LENGTH] or "root"
    return interlock_home() / f"{name}-{short_hash(here)}"


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:8]


def _expanded(chosen: str) -> Path:
    try:
        return Path(chosen).expanduser().absolute()
    except RuntimeError as error:  # no account of that name, or none that has a home
        expected = "a path without ~, which stands for no folder here"
        raise InvalidSetting(setting="INTERLOCK_HOME", found=chosen, expected=expected, origin="environment") from error


def _usual_home() -> Path | None:
    if os.geteuid() == 0:
        return ROOT_HOME
    if (shared := os.environ.get("XDG_DATA_HOME")) and Path(shared).is_absolute():
        return Path(shared) / "interlock"
    home = os.environ.get("HOME") or _home_of_account()
    return Path(home) / ".local/share/interlock" if home and Path(home).is_absolute() else None


def _home_of_account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


def _can_make(folder: Path) -> bool:
    # Not `exists`, which raises where an account kept the HOME of another and may not look into it.
    place = next(place for place in (folder, *folder.parents) if os.access(place, os.F_OK))
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _temporary_home() -> Path:
    folder = Path(tempfile.gettempdir()) / f"interlock-{os.geteuid()}"
    _refuse_a_strangers(folder)
    return folder


def _refuse_a_strangers(folder: Path) -> None:
    """Anybody can make a folder of a foreseeable name among temporary files; only our own is trusted."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if found.st_uid not in (0, os.geteuid()) or folder.is_symlink():
        raise FolderTaken(folder=str(folder), problem="another account made it; remove it or set INTERLOCK_HOME")
