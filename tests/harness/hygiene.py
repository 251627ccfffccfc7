"""Nothing outlives its test: a task, thread or process that does fails the test that started it, by name.

The snapshot is taken after the wider fixtures of the test have started their servers, and compared after its own
fixtures have closed what they opened.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.runtime.portal import portal
from tests.harness import guard
from tests.harness.waiting import INTERVAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterator
    from typing import Any

GRACE = 20.0
PORTAL_THREAD = "interlock-portal"
# Threads of an event loop's default executor live until the loop closes, which is after this check.
_OF_THE_LOOP = ("asyncio_", "ThreadPoolExecutor")

_allowed_processes: set[int] = set()


def allow_process(pid: int) -> None:
    """This process is meant to outlive the test that happened to start it."""
    _allowed_processes.add(pid)


@pytest.fixture(autouse=True)
def nothing_outlives_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    threads, processes = _threads(), _processes()
    if request.node.get_closest_marker("asyncio"):
        request.getfixturevalue("no_task_outlives_the_test")
    yield
    _close_portal(threads)
    _complain("threads", _remaining(lambda: _threads() - threads), _describe_thread)
    _complain("processes", _remaining(lambda: _processes() - processes - _allowed()), _describe_process)


@pytest.fixture
async def no_task_outlives_the_test() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    leaked = asyncio.all_tasks() - before - {asyncio.current_task()}
    if leaked:
        _, leaked = await asyncio.wait(leaked, timeout=GRACE)
    _complain("tasks", leaked, repr)


def _close_portal(before: set[threading.Thread]) -> None:
    """The thread behind the blocking calls serves the process for as long as it lives: here, one test."""
    if any(thread.name == PORTAL_THREAD for thread in _threads() - before):
        portal.close()


def _remaining(look: Callable[[], set[Any]]) -> set[Any]:
    deadline = time.monotonic() + GRACE
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(INTERVAL)
    return found


def _complain(what: str, leaked: Collection[Any], describe: Callable[[Any], str]) -> None:
    if leaked:
        names = "\n".join(f"  {describe(one)}" for one in leaked)
        pytest.fail(f"{what} that outlive the test; close what started them:\n{names}", pytrace=False)


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith(_OF_THE_LOOP)}


def _describe_thread(thread: threading.Thread) -> str:
    return f"{thread.name} ({getattr(thread, '_target', None)})"


def _processes() -> set[int]:
    """Our children, where the kernel lists them."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for children in lists for pid in _read(children).split()}


def _allowed() -> set[int]:
    return _allowed_processes | {guard.pid() or 0}


def _describe_process(pid: int) -> str:
    command = _read(Path(f"/proc/{pid}/cmdline")).replace(chr(0), " ")
    return f"{pid}: {command or 'ended, and nobody asked for its exit code'}"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
