"""A tiny HTTP/1.1 server: one request per connection, few paths, small bodies; it knows nothing else of HTTP.

It listens on the loopback unless an address is written out: a name may resolve to anything, so only a literal address
leaves the machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0
"""Seconds for one request and its answer."""
LONGEST_LINE = 4096
MOST_HEADERS = 100
LARGEST_PORT = 65535
LARGEST_BODY = 16 * 1024
MOST_AT_ONCE = 256
"""Connections; who opens more must not take the files away that this process needs for its work."""
EXPECTED = "PORT or ADDRESS:PORT, for example 8080 (loopback only), 0.0.0.0:8080 or [::]:8080"


class Address(NamedTuple):
    host: str
    port: int


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


class Answer(NamedTuple):
    status: HTTPStatus
    content: Mapping[str, Any]
    headers: Mapping[str, str] = {}


class TooLarge(ValueError):
    """More than any request that is meant for us."""


def parse_address(text: str, option: str = "probes") -> Address:
    """Where to listen. Without a host it is the loopback; a name is refused unless it is that of the loopback."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not (port.isascii() and port.isdigit()) or int(port) > LARGEST_PORT:
        raise InvalidOption(option=option, found=text, expected=EXPECTED)
    if host == "localhost":
        return Address(LOOPBACK, int(port))
    try:
        return Address(str(ipaddress.ip_address(host)), int(port))
    except ValueError:
        expected = f"the address itself instead of a name that may leave this machine: {EXPECTED}"
        raise InvalidOption(option=option, found=text, expected=expected) from None


class HttpServer:
    """A component; what it answers is for those who inherit."""

    name = "http"

    def __init__(self, address: Address) -> None:
        self.address = address
        self._server: asyncio.Server | None = None
        self._talking: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    async def start(self) -> None:
        try:
            self._server = await asyncio.start_server(self._talk, *self.address, limit=LONGEST_LINE)
        except OSError as error:
            expected = f"an address that can be listened on ({error.strerror or error})"
            raise InvalidOption(option=self.name, found="{}:{}".format(*self.address), expected=expected) from error
        self.address = Address(*self._server.sockets[0].getsockname()[:2])
        self.listening()

    async def run(self) -> None:
        try:
            await self._over.wait()
        finally:
            if self._server is not None:
                self._server.close()
            for task in tuple(self._talking):
                task.cancel()
            await asyncio.gather(*self._talking, return_exceptions=True)

    def stop(self) -> None:
        self._over.set()

    def listening(self) -> None:
        """Its port is open."""

    async def answer(self, request: Request) -> Answer:
        raise NotImplementedError

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if len(self._talking) >= MOST_AT_ONCE:
            writer.close()
            return
        if task is not None:
            self._talking.add(task)
            task.add_done_callback(self._talking.discard)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(PATIENCE):
                    writer.write(await self._respond(reader))
                    await writer.drain()
        finally:
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> bytes:
        try:
            request = await _request(reader)
        except TooLarge as refused:
            return _response(failing(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, str(refused)))
        except (ValueError, asyncio.LimitOverrunError):
            return _response(failing(HTTPStatus.BAD_REQUEST, "this is not HTTP"))
        return _response(await self.answer(request), bodiless=request.method == "HEAD")


def failing(status: HTTPStatus, detail: str, **headers: str) -> Answer:
    return Answer(status, {"status": "failing", "detail": detail}, headers)


async def _request(reader: asyncio.StreamReader) -> Request:
    line = (await reader.readuntil(b"\n")).decode("latin-1").split()
    if len(line) != len(("method", "path", "version")) or not line[2].startswith("HTTP/1."):
        raise ValueError(line)
    headers: dict[str, str] = {}
    for _ in range(MOST_HEADERS):
        head = (await reader.readuntil(b"\n")).decode("latin-1").strip()
        if not head:
            return Request(line[0], line[1].partition("?")[0], headers, await _body(reader, headers))
        name, _, value = head.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise ValueError("too many headers")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """As long as it says; one in pieces of unknown length is none of ours."""
    said = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (said.isascii() and said.isdigit()):
        raise ValueError("a body without a length")
    if len(said) > len(str(LARGEST_BODY)) or int(said) > LARGEST_BODY:
        raise TooLarge(f"a body of more than {LARGEST_BODY} bytes")
    return await reader.readexactly(int(said))


def _response(answer: Answer, *, bodiless: bool = False) -> bytes:
    body = json.dumps(answer.content).encode() + b"\n"
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in answer.headers.items())
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n{more}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if bodiless else body)
