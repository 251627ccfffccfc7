"""A child of the command line that does not outlive it: it ends when the other end of its standard input closes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import IO

ENDED_WITHIN = 5.0


def start(
    module: str,
    arguments: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output: int | IO[bytes] | None = None,
    errors: int | IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Run a module of ours; it has to call `end_with_the_parent`. A Ctrl-C of the terminal does not reach it."""
    return subprocess.Popen(  # noqa: S603  our own interpreter and our own module
        [sys.executable, "-m", module, *arguments],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes], within: float = ENDED_WITHIN) -> int:
    """Ask it to end, and make it end when it does not; answers its exit code."""
    if process.poll() is None:
        process.terminate()
    return reap(process, within)


def reap(process: subprocess.Popen[bytes], within: float = ENDED_WITHIN) -> int:
    """Wait for its end, and make it end when it does not come."""
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
    return process.returncode


def end_with_the_parent() -> None:
    """In the child: a parent that was killed closes its end of the pipe, too."""
    threading.Thread(target=_watch, name="tether", daemon=True).start()


def _watch() -> None:
    # Not through sys.stdin: its lock, held by a thread that reads, would abort the interpreter when it ends.
    with suppress(OSError):
        while os.read(0, 1):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
