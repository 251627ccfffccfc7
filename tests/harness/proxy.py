"""A TCP proxy in user space that can delay, cut and half-open: the network on a bad day."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit, urlunsplit

from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Coroutine

HOST = "127.0.0.1"
HANDING_OVER = 3
CHUNK = 1 << 16
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class TcpProxy:
    """Forwards bytes from `port` to the target; its methods may be called from any thread or loop."""

    def __init__(self, target_host: str, target_port: int) -> None:
        self._target = (target_host, target_port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp proxy", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._delay = 0.0
        self.accepted = self.sent_bytes = self.received_bytes = 0
        self._socket = _bound(0)
        self.port: int = self._socket.getsockname()[1]
        self._thread.start()
        self.heal()

    @classmethod
    def to(cls, dsn: str) -> Self:
        """A proxy to the server that this URL names."""
        parts = urlsplit(dsn)
        if not parts.hostname or not parts.port:
            raise ValueError(f"a proxy needs a host and a port, found {dsn!r}")
        return cls(parts.hostname, parts.port)

    def dsn(self, original: str) -> str:
        """The same URL by way of this proxy."""
        parts = urlsplit(original)
        account = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        return urlunsplit(parts._replace(netloc=f"{account}{HOST}:{self.port}"))

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def delay(self, seconds: float) -> None:
        """Hold every piece of data back for this long, in each direction."""
        self._call(self._set_delay(seconds))

    def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        self._call(self._cut())

    def half_open(self) -> None:
        """Accept and keep connections, forward nothing in either direction, and tell nobody."""
        self._call(self._half_open())

    def heal(self) -> None:
        """Forward at once again; what was held back arrives late."""
        self._call(self._heal())

    def close(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, action: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(action, self._loop).result(timeout=PATIENCE)

    async def _set_delay(self, seconds: float) -> None:
        self._delay = seconds

    async def _half_open(self) -> None:
        self._flowing.clear()

    async def _heal(self) -> None:
        self._delay = 0.0
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, sock=self._socket)

    async def _cut(self) -> None:
        if self._server is not None:
            await self._stop_accepting(self._server)
            self._server.close()
            self._server = None
            self._socket = _bound(self.port)  # bound and not listening: refuses, and keeps the port ours
        for writer in self._writers:
            _reset(writer)
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _stop_accepting(self, server: asyncio.Server) -> None:
        """What asyncio accepted and has not handed over yet would be leaked by it, were the server closed by then."""
        for sock in server.sockets:
            self._loop.remove_reader(sock.fileno())
        for _ in range(HANDING_OVER):
            await asyncio.sleep(0)

    async def _close(self) -> None:
        await self._cut()
        self._socket.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        task = self._loop.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            await self._flowing.wait()
            target_reader, target_writer = await asyncio.open_connection(*self._target)
            writers.append(target_writer)
            self._writers.add(target_writer)
            await _first_to_end(
                self._pump(reader, target_writer, "sent_bytes"), self._pump(target_reader, writer, "received_bytes")
            )
        except OSError:
            _reset(writer)
        finally:
            await self._discard(writers)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counter: str) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(CHUNK):
                await asyncio.sleep(self._delay)
                await self._flowing.wait()
                writer.write(data)
                setattr(self, counter, getattr(self, counter) + len(data))
                await writer.drain()
        await self._flowing.wait()  # the end of a connection is news, too

    async def _discard(self, writers: list[asyncio.StreamWriter]) -> None:
        for writer in writers:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _first_to_end(*directions: Coroutine[Any, Any, None]) -> None:
    """PostgreSQL and Valkey close both directions together, so that the end of one is the end of the connection."""
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _bound(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((HOST, port))
    return sock


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
