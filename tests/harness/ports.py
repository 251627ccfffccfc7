"""TCP ports on the loopback for servers of the tests.

They lie below the range from which the kernel serves outgoing connections: a port of that range may be taken by any
client between two starts of a server, and a client that tries again and again while the server is down may even be
connected to itself. Two test processes can still choose the same port at once, so a first start tries another one.
"""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

HOST = "127.0.0.1"
PORTS = range(15_000, 32_000)
ATTEMPTS = 10
_choice = random.SystemRandom()  # not the seeded one: every test process would walk through the same ports


class PortTakenError(RuntimeError):
    """Another program took the port between the choice and its use."""


def free_port() -> int:
    """A port that nobody uses right now."""
    while not is_free(port := _choice.choice(PORTS)):
        pass
    return port


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def on_free_port(start: Callable[[int], T]) -> T:
    """Start a server on a port that is free, and on another one when somebody was faster."""
    for _ in range(ATTEMPTS - 1):
        try:
            return start(free_port())
        except PortTakenError:
            continue
    return start(free_port())


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0
