"""Named barriers in the code path, for tests that force an interleaving; inert otherwise.

A failpoint does nothing unless a test arms it, in this process with `arm`, or in a child process through the variable
INTERLOCK_FAILPOINTS, for example `manifests.before_create=file:/tmp/x`: the child creates `/tmp/x.reached` when it
arrives and goes on when `/tmp/x.go` appears. `name=exit` kills the process there, without cleanup.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_armed: dict[str, Callable[[], Awaitable[None]]] = {}


def arm(name: str, action: Callable[[], Awaitable[None]]) -> None:
    """From now on `reach(name)` awaits the action."""
    _armed[name] = action


def disarm(name: str | None = None) -> None:
    """Make one failpoint inert again, or all of them."""
    if name is None:
        _armed.clear()
    else:
        _armed.pop(name, None)


async def reach(name: str) -> None:
    """Called by production code at a place where an interleaving matters."""
    if _armed and (action := _armed.get(name)) is not None:
        await action()


def arm_from_environment(text: str) -> None:
    """Arm what a parent process asked for, `name=file:PATH` or `name=exit`, separated by commas."""
    for part in filter(None, text.split(",")):
        name, _, action = part.partition("=")
        if action == "exit":
            arm(name, _exit)
        elif action.startswith("file:"):
            arm(name, _Barrier(Path(action.removeprefix("file:"))))


async def _exit() -> None:
    os._exit(137)


class _Barrier:
    def __init__(self, path: Path) -> None:
        self._reached, self._go = path.with_suffix(".reached"), path.with_suffix(".go")

    async def __call__(self) -> None:
        self._reached.touch()
        while not self._go.exists():  # noqa: ASYNC110  the signal comes from another process, through the file system
            await asyncio.sleep(0.005)


arm_from_environment(os.environ.get("INTERLOCK_FAILPOINTS", ""))
