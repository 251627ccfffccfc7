"""N processes of an app on one machine, which a test can kill, stop and continue.

A process has its own process group and dies with the test run. Its stdout carries messages (JSON lines, see
`child.tell`), its stderr goes to a file; both are shown when the test fails. `start` takes a script (Path), a
`module:function`, a function of an importable module, or a piece of code (a string with anything else in it).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.harness import guard
from tests.harness.messages import Mailbox
from tests.harness.waiting import PATIENCE, NeverHappenedError, eventually, eventually_blocking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.harness.messages import Message

ROOT = Path(__file__).parents[2]
TAIL = 4000


class Process:
    """One running child."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path, *, listens: bool = False
    ) -> None:
        self.name = name
        self._folder, self._mailbox, self._gone = folder, Mailbox(), False
        with self.file("stderr").open("wb") as stderr:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                cwd=folder,
                process_group=0,
            )
        guard.watch(self.pid)
        self._reader = threading.Thread(target=self._read, name=f"reader of {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """Negative: ended by that signal. None: still running."""
        return self._popen.poll()

    def kill(self) -> None:
        """End it at once, as a crash or a power cut would; its own children too."""
        self._signal_group(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        """Freeze it, as a long garbage collection or a paused virtual machine would; returns when it stands still."""
        self._signal_group(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def cont(self) -> None:
        """Let a stopped process go on."""
        self._signal_group(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask the process itself to end, as a deploy does."""
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    async def wait(self, timeout: float = PATIENCE) -> int:  # noqa: ASYNC109  the timeout names the process
        """The exit code."""
        await eventually(lambda: self.returncode is not None, timeout, f"the end of {self.name}")
        return self._reap()

    def wait_blocking(self, timeout: float = PATIENCE) -> int:
        eventually_blocking(lambda: self.returncode is not None, timeout, f"the end of {self.name}")
        return self._reap()

    async def expect(self, kind: str, timeout: float = PATIENCE) -> Message:  # noqa: ASYNC109  the timeout names the message
        """The next message of this kind that nobody has taken yet."""
        return self._answered(await self._mailbox.take(kind, timeout), kind, timeout)

    def expect_blocking(self, kind: str, timeout: float = PATIENCE) -> Message:
        return self._answered(self._mailbox.take_blocking(kind, timeout), kind, timeout)

    def tell(self, message: Message) -> None:
        """Send one line to a process that was started with `listens`."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(message).encode() + b"\n")
        self._popen.stdin.flush()

    def heard(self, kind: str) -> list[Message]:
        """Every message of this kind until now, taken or not."""
        return self._mailbox.all(kind)

    def file(self, stream: str) -> Path:
        return self._folder / f"{self.name}.{stream}"

    def output(self, stream: str) -> str:
        return self.file(stream).read_text(errors="replace") if self.file(stream).exists() else ""

    def _answered(self, message: Message | None, kind: str, timeout: float) -> Message:
        if message is not None:
            return message
        state = f"ended with {self._exit_code()}" if self._mailbox.closed else f"said nothing of it for {timeout} s"
        tails = "\n".join(f"--- {stream}\n{self.output(stream)[-TAIL:]}" for stream in ("stdout", "stderr"))
        raise NeverHappenedError(f"no message {kind!r}: {self.name} {state}\n{tails}")

    def _exit_code(self) -> int | str:
        """Its output closes a moment before it can be reaped; a child that closed its output itself may live on."""
        try:
            return self._popen.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its output closed, but still running"

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with self.file("stdout").open("wb", buffering=0) as copy, self._popen.stdout as stdout:
            for line in stdout:
                copy.write(line)
                self._mailbox.put(line)
        self._mailbox.close()

    def _signal_group(self, number: int) -> None:
        if self._gone:  # its number may belong to a stranger by now
            return
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _reap(self) -> int:
        # What a process leaves behind in its group still holds the pipe: it must go before the reader can end.
        self._signal_group(signal.SIGKILL)
        code = self._popen.wait()
        self._reader.join(timeout=PATIENCE)
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        guard.forget(self.pid)
        self._gone = True
        return code


class Fleet:
    """The processes of one test."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._folder, self._env = folder, dict(env or {})
        self.processes: list[Process] = []

    def start(self, target: Any, *arguments: Any, env: Mapping[str, str] | None = None, name: str = "") -> Process:
        return self.command(*_command(target, arguments), env=env, name=name)

    def start_many(
        self, count: int, target: Any, *arguments: Any, env: Mapping[str, str] | None = None
    ) -> list[Process]:
        return [self.start(target, *arguments, env=env) for _ in range(count)]

    def command(
        self, *command: str, env: Mapping[str, str] | None = None, name: str = "", listens: bool = False
    ) -> Process:
        """Start any program, for example the command line of the app."""
        name = name or f"process{len(self.processes)}"
        process = Process(name, command, _environment({**self._env, **(env or {})}), self._folder, listens=listens)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()

    def sections(self) -> list[tuple[str, str]]:
        """What every process said, for the report of a failed test."""
        return [
            (f"{process.name} {stream} (exit code {process.returncode})", text[-TAIL:])
            for process in self.processes
            for stream in ("stdout", "stderr")
            if (text := process.output(stream))
        ]


def _command(target: Any, arguments: Sequence[Any]) -> list[str]:
    if callable(target):
        target = f"{target.__module__}:{target.__qualname__}"
    if isinstance(target, Path):
        return [sys.executable, str(target), *map(str, arguments)]
    if re.fullmatch(r"[\w.]+:[\w.]+", target):
        return [sys.executable, "-m", "tests.harness.child", target, json.dumps(arguments, default=str)]
    return [sys.executable, "-c", textwrap.dedent(target), *map(str, arguments)]


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", **extra}
