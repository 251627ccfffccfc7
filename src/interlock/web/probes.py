"""A tiny HTTP server for orchestrators: `/live`, `/ready`, `/startup`.

It answers 200 or 503 with a line of JSON that names no secret, and knows nothing else of HTTP. It listens on the
loopback unless an address is written out: a name may resolve to anything, so only a literal address leaves the machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from interlock.errors import InvalidOption
from interlock.observe.events.probe import ProbesListening
from interlock.operate.health_signs import SignsComponent, VitalSigns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.observe.bus import Emit
    from interlock.operate.health_signs import Sign
    from interlock.runtime.keeper import Keeper
    from interlock.runtime.supervisor import Component

    Around: TypeAlias = Callable[[Keeper, Sequence[Component]], Sequence[Component]]

LOOPBACK = "127.0.0.1"
PATIENCE = 5.0
LONGEST_LINE = 4096
MOST_HEADERS = 100
LARGEST_PORT = 65535
EXPECTED = "PORT or ADDRESS:PORT, for example 8080 (loopback only), 0.0.0.0:8080 or [::]:8080"


class Address(NamedTuple):
    host: str
    port: int


def parse_address(text: str) -> Address:
    """Where to listen. Without a host it is the loopback; a name is refused unless it is that of the loopback."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not (port.isascii() and port.isdigit()) or int(port) > LARGEST_PORT:
        raise InvalidOption(option="probes", found=text, expected=EXPECTED)
    if host == "localhost":
        return Address(LOOPBACK, int(port))
    try:
        return Address(str(ipaddress.ip_address(host)), int(port))
    except ValueError:
        expected = f"the address itself instead of a name that may leave this machine: {EXPECTED}"
        raise InvalidOption(option="probes", found=text, expected=expected) from None


def probes_at(text: str, emit: Emit) -> Around:
    """The components with probes around them; a wrong address is refused before anything is opened."""
    address = parse_address(text)

    def around(keeper: Keeper, components: Sequence[Component]) -> Sequence[Component]:
        signs = VitalSigns(keeper)
        return [ProbeServer(address, signs, emit=emit), *components, SignsComponent(signs)]

    return around


class ProbeServer:
    """A component: started first and stopped last, so that it answers while the others start and drain."""

    name = "probes"

    def __init__(self, address: Address, signs: VitalSigns, *, emit: Emit) -> None:
        self.address = address
        self._emit = emit
        self._paths: dict[str, Callable[[], Sign]] = {
            "/live": signs.live,
            "/ready": signs.ready,
            "/startup": signs.startup,
        }
        self._server: asyncio.Server | None = None
        self._talking: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    async def start(self) -> None:
        try:
            self._server = await asyncio.start_server(self._talk, *self.address, limit=LONGEST_LINE)
        except OSError as error:
            expected = f"an address that can be listened on ({error.strerror or error})"
            raise InvalidOption(option="probes", found="{}:{}".format(*self.address), expected=expected) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = Address(host, port)
        self._emit(ProbesListening(host=host, port=port))

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

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._talking.add(task)
            task.add_done_callback(self._talking.discard)
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(PATIENCE):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            method, path = await _request(reader)
        except ValueError:
            return _response(HTTPStatus.BAD_REQUEST, "this is not HTTP")
        look = self._paths.get(path.partition("?")[0])
        if look is None:
            return _response(HTTPStatus.NOT_FOUND, f"there are {', '.join(self._paths)}")
        if method not in ("GET", "HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
        sign = look()
        status = HTTPStatus.OK if sign.good else HTTPStatus.SERVICE_UNAVAILABLE
        return _response(status, sign.detail, bodiless=method == "HEAD")


async def _request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Method and path; the headers are read to their end and not looked at."""
    line = (await reader.readuntil(b"\n")).decode("latin-1").split()
    if len(line) != len(("method", "path", "version")) or not line[2].startswith("HTTP/1."):
        raise ValueError(line)
    for _ in range(MOST_HEADERS):
        if not (await reader.readuntil(b"\n")).strip():
            return line[0], line[1]
    raise ValueError("too many headers")


def _response(status: HTTPStatus, detail: str, *, bodiless: bool = False) -> bytes:
    body = json.dumps({"status": "ok" if status is HTTPStatus.OK else "failing", "detail": detail}).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if bodiless else body)
