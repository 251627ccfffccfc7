"""Nothing that the tests start outlives the test run, not even a stopped process after `kill -9` of pytest.

A small process holds the reading end of a pipe from pytest. It is told of every process that is started and ended; when
the pipe closes, for whatever reason, it kills the process groups that are left. (A death signal from the kernel would
be tied to the thread that started the child, and exists on Linux only.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

_END = b"end\n"
_lock = threading.Lock()
_guard: subprocess.Popen[bytes] | None = None


def watch(group: int) -> None:
    """Kill this process group when the test run ends in any way."""
    _tell(f"+{group}\n")


def forget(group: int) -> None:
    """The group has ended; its number may be given to a stranger from now on."""
    _tell(f"-{group}\n")


def close() -> None:
    """End the guard, which kills what is still watched."""
    global _guard  # noqa: PLW0603  one guard per test process
    with _lock:
        if _guard is not None and _guard.stdin is not None:
            _guard.stdin.write(_END)  # said aloud: a forked child may still hold its copy of the pipe
            _guard.stdin.close()
            _guard.wait()
        _guard = None


def pid() -> int | None:
    return None if _guard is None else _guard.pid


def _tell(line: str) -> None:
    with _lock:
        stdin = _running().stdin
        assert stdin is not None
        stdin.write(line.encode())
        stdin.flush()


def _running() -> subprocess.Popen[bytes]:
    global _guard  # noqa: PLW0603  one guard per test process
    if _guard is None:
        command = [sys.executable, "-I", "-S", __file__]
        _guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    return _guard


def _stand_guard() -> None:
    watched: set[int] = set()
    for line in iter(sys.stdin.buffer.readline, b""):
        if line == _END:
            break
        (watched.add if line[:1] == b"+" else watched.discard)(int(line[1:]))
    for group in watched:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _stand_guard()
