"""Child processes for CPU-bound trains: each runs one job at a time, is kept for the next, and dies with this process.

A child serves nobody but its own job, so one that crashes harms no sibling. A job that is to stop is stopped for real:
its child is killed, and what the train has started with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from interlock.errors import ChildDied
from interlock.model.failure import RaisedInChildError
from interlock.observe.logs import logging_as_here
from interlock.worker.child import LENGTH, outcome_from

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from interlock.worker.job import Job


class Processes:
    def __init__(self) -> None:
        self._idle: list[Process] = []

    async def run(self, job: Job) -> str:
        """The output of the train, as JSON."""
        child = self._idle_and_alive() or await self._start()
        try:
            answer = await _ask(child, job)
        except BaseException:
            await _end(child)
            raise
        self._idle.append(child)
        return _output(answer)

    def _idle_and_alive(self) -> Process | None:
        """A child that something killed between two jobs is not the failure of the next."""
        while self._idle:
            child = self._idle.pop()
            if child.returncode is None and not _has_ended(child.pid):
                return child
        return None

    async def close(self) -> None:
        while self._idle:
            await _end(self._idle.pop())

    async def _start(self) -> Process:
        path = os.pathsep.join(filter(None, sys.path))
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "interlock.worker.child",
            *logging_as_here(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )


def _has_ended(pid: int) -> bool:
    """Asked of the system, because the event loop hears of it only when it gets a turn. macOS has no such call before
    Python 3.13.
    """
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # collected already
        return True


async def _ask(child: Process, job: Job) -> dict[str, Any]:
    if child.stdin is None or child.stdout is None:
        raise ChildDied(train=job.train, ended_with=None)
    payload = json.dumps(_request(job)).encode()
    try:
        child.stdin.write(LENGTH.pack(len(payload)) + payload)
        await child.stdin.drain()
        head = await child.stdout.readexactly(LENGTH.size)
        answer: dict[str, Any] = json.loads(await child.stdout.readexactly(LENGTH.unpack(head)[0]))
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise ChildDied(train=job.train, ended_with=await child.wait()) from error
    return answer


def _request(job: Job) -> dict[str, Any]:
    function, main = job.declaration.junctions[0].function, sys.modules.get("__main__")
    return {
        "module": _started_as(main) if function.__module__ == "__main__" else function.__module__,
        "main": getattr(main, "__file__", None),
        "qualname": function.__qualname__,
        "input": job.claim.input,
        "context": job.about(),
    }


def _started_as(main: ModuleType | None) -> str:
    """What `python -m` was given: a module of a package can be imported only by that."""
    spec: ModuleSpec | None = getattr(main, "__spec__", None)
    return "__main__" if spec is None else spec.name


def _output(answer: dict[str, Any]) -> str:
    if "outcome" in answer:
        raise outcome_from(answer["outcome"])
    if "raised" in answer:
        raise RaisedInChildError(**answer["raised"])
    output: str = answer["output"]
    return output


async def _end(child: Process) -> None:
    """Kill it with all that its train has started."""
    with suppress(ProcessLookupError):
        child.kill()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    await child.wait()
