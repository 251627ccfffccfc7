"""Makes the database cluster of a server folder, as a draft that is renamed when it is whole."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from interlock.embedded import failures
from interlock.embedded.accounts import identity_of
from interlock.embedded.folder import DRAFT_PREFIX
from interlock.embedded.state import DATABASE, USER, State, write_private
from interlock.embedded.watchdog import plain_environment
from interlock.errors import FolderTaken, StartFailed

if TYPE_CHECKING:
    from pathlib import Path

    from interlock.embedded.binaries import Binaries
    from interlock.embedded.folder import ServerFolder


def major_of(folder: ServerFolder) -> int | None:
    """The PostgreSQL version that wrote the data, if there are any."""
    try:
        return int((folder.data / "PG_VERSION").read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise FolderTaken(folder=str(folder.path), problem="data/PG_VERSION names no version") from error


def make_cluster(folder: ServerFolder, binaries: Binaries, *, durable: bool) -> State:
    """A new cluster with one user and one database; its password is remembered before the data can be seen."""
    state, draft = State.fresh(), folder.path / f"{DRAFT_PREFIX}{os.getpid()}"
    folder.make_private(draft)
    try:
        _initialise(folder, draft, binaries, state, durable=durable)
        state.write(folder.state)
        (draft / "data").rename(folder.data)
        if durable:
            _sync(folder.path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return state


def _initialise(folder: ServerFolder, draft: Path, binaries: Binaries, state: State, *, durable: bool) -> None:
    password_file, data = draft / "password", str(draft / "data")
    folder.make_private(draft / "data")
    write_private(password_file, state.password)
    if (runner := folder.runner()) is not None:
        os.chown(password_file, runner.uid, runner.gid)
    passwords = ["--auth-local=scram-sha-256", "--auth-host=scram-sha-256", f"--pwfile={password_file}"]
    sync = [] if durable else ["--no-sync"]
    _run(folder, [binaries.initdb, "-D", data, "-U", USER, "-E", "UTF8", "--locale=C", *passwords, *sync])
    fsync = f"fsync={'on' if durable else 'off'}"
    _run(folder, [binaries.postgres, "--single", "-D", data, "-c", fsync, "template1"], f"CREATE DATABASE {DATABASE}\n")


def _sync(place: Path) -> None:
    """A power cut must not undo the rename: the next start would make an empty cluster."""
    fd = os.open(place, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _run(folder: ServerFolder, command: list[str], text: str = "") -> None:
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=plain_environment(),
            check=False,
            **identity_of(folder.runner()),
        )
    except OSError as error:
        raise StartFailed(folder=str(folder.path), log=str(error)) from error
    said = done.stdout.decode(errors="replace")
    # A single-user server ends well even when the one statement it was given failed.
    if done.returncode != 0 or "ERROR:" in said:
        raise failures.failure_of(folder.path, said)
