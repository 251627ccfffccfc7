"""The probe server speaks to orchestrators and survives everybody else."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from interlock.errors import InvalidOption
from interlock.operate.health_signs import Sign
from interlock.web import http
from interlock.web.http import Address
from interlock.web.probes import ProbeServer
from tests.harness.waiting import eventually


class Signs:
    def __init__(self) -> None:
        self.good = True

    def live(self) -> Sign:
        return Sign(good=True, detail="alive")

    def startup(self) -> Sign:
        return Sign(good=True, detail="started")

    def ready(self) -> Sign:
        return Sign(self.good, "ready" if self.good else "draining")


@asynccontextmanager
async def serving(signs: Signs):
    said: list = []
    server = ProbeServer(Address("127.0.0.1", 0), signs, emit=said.append)
    await server.start()
    assert (said[0].host, said[0].port) == server.address
    running = asyncio.create_task(server.run())
    try:
        yield server
    finally:
        server.stop()
        await running


async def talk(server: ProbeServer, request: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def test_a_sign_is_200_when_good_and_503_when_not():
    signs = Signs()
    async with serving(signs) as server:
        for path in ("/live", "/ready", "/startup", "/ready?verbose=1"):
            assert (await talk(server, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()))[0] == 200
        signs.good = False
        status, body = await talk(server, b"GET /ready HTTP/1.1\r\n\r\n")
        assert (status, json.loads(body)) == (503, {"status": "failing", "detail": "draining"})
        assert await talk(server, b"HEAD /ready HTTP/1.0\r\n\r\n") == (503, b"")
        assert (await talk(server, b"GET /live HTTP/1.1\r\n\r\n"))[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"POST /live HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\n", 400),
        (b"GET /live HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 400),
        (b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"GET /live HTTP/1.1\r\nA: " + b"x" * 5000 + b"\r\n\r\n", 400),
    ],
)
async def test_anything_else_is_answered_and_harms_nobody(request_, status):
    async with serving(Signs()) as server:
        assert (await talk(server, request_))[0] == status
        assert (await talk(server, b"GET /live HTTP/1.1\r\n\r\n"))[0] == 200


async def test_a_line_without_end_and_a_client_that_says_nothing_are_cut_off(monkeypatch):
    monkeypatch.setattr(http, "PATIENCE", 2)
    async with serving(Signs()) as server:
        for request in (b"GET /" + b"x" * 10_000, b"GET /li", b""):
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(request)
            try:
                await asyncio.wait_for(reader.read(), 60)
            except ConnectionResetError:
                pass
            finally:
                writer.close()
        assert (await talk(server, b"GET /live HTTP/1.1\r\n\r\n"))[0] == 200


async def test_who_opens_more_connections_than_there_are_gets_none_and_takes_none_from_others_for_long(monkeypatch):
    """Each is a file of the process, and what it runs needs files too."""
    monkeypatch.setattr(http, "MOST_AT_ONCE", 2)
    async with serving(Signs()) as server:
        held = [await asyncio.open_connection(*server.address) for _ in range(2)]
        await eventually(lambda: len(server._talking) == 2)
        reader, writer = await asyncio.open_connection(*server.address)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
        held[0][1].close()
        await eventually(lambda: len(server._talking) == 1)
        assert (await talk(server, b"GET /live HTTP/1.1\r\n\r\n"))[0] == 200
        held[1][1].close()


async def test_stopping_does_not_wait_for_a_client_that_holds_its_connection():
    async with asyncio.timeout(60):
        async with serving(Signs()) as server:
            _, writer = await asyncio.open_connection(*server.address)
            writer.write(b"GET")
        writer.close()


async def test_a_port_that_is_taken_is_a_typed_error():
    async with serving(Signs()) as server:
        with pytest.raises(InvalidOption, match="can be listened on"):
            await ProbeServer(server.address, Signs(), emit=lambda _: None).start()
