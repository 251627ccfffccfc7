"""The emitters in the box, against a real HTTP server and a real stream."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
import socket
import tracemalloc
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from redis.asyncio import Redis

from interlock.errors import InvalidOption
from interlock.model.lifecycle import OutboxState
from interlock.model.message import Claimed, Dead, Delivered, Throttled
from interlock.outbox.emitters.redis_stream import RedisStream
from interlock.outbox.emitters.webhook import Webhook, WebhookFailed, is_public
from interlock.outbox.message import EmitContext, Message

CLAIMED = Claimed(
    7, "m-7", "order.paid", '{"id": 1}', '{"X-Own": "yes"}', "k", None, OutboxState.PENDING, 2, 0, 0,
    datetime.now(UTC), None, "00-aa-bb-01", False, None, False, False, 1,
)  # fmt: skip


class Server:
    """Answers what the test wants, and keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: str | bytes = "HTTP/1.1 200 OK\r\nRecord-Id: r-9\r\nContent-Length: 0\r\n\r\n"
        self.connections = 0
        self.keeps = False
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"

    async def stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader, writer) -> None:
        self.connections += 1
        try:
            await self._answer(reader, writer)
            while self.keeps:
                await self._answer(reader, writer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def _answer(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append((head[0], headers, body))
        writer.write(self.answer if isinstance(self.answer, bytes) else self.answer.encode())
        await writer.drain()


@pytest.fixture
async def server():
    server = Server()
    server.url = await server.start()
    yield server
    await server.stop()


async def post(server, **options):
    webhook = Webhook(server.url, allow_private=True, **options)
    try:
        return await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5))
    finally:
        await webhook.aclose()


def answer(status: str, *headers: str) -> str:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Connection: close", "Content-Length: 0", "", ""])


async def test_a_webhook_is_signed_and_carries_the_idempotency_key(server):
    outcome = await post(server, secret="s3cret", record_header="Record-Id", headers={"X-Tenant": "t"})
    assert isinstance(outcome, Delivered)
    assert outcome.record_id == "r-9"
    [(line, headers, body)] = server.requests
    assert line == "POST /hook HTTP/1.1"
    assert json.loads(body) == {"id": 1}
    seconds, digest = (part.partition("=")[2] for part in headers["interlock-signature"].split(","))
    assert digest == hmac.new(b"s3cret", f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    expected = {"idempotency-key": "m-7", "x-own": "yes", "x-tenant": "t", "traceparent": "00-aa-bb-01"}
    assert expected.items() <= headers.items()
    assert headers["interlock-redelivery"] == "true"


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        ("429 Too Many", ["Retry-After: 17"], 17),
        ("503 Unavailable", ["Retry-After: 3"], 3),
        ("429 Too Many", [], 30),
        ("429 Too Many", ["Retry-After: 0"], 30),
        ("429 Too Many", ["Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"], 30),
    ],
)
async def test_a_receiver_that_throttles_is_given_the_time_it_asks_for(server, status, headers, seconds):
    server.answer = answer(status, *headers)
    outcome = await post(server)
    assert isinstance(outcome, Throttled)
    assert outcome.after.total_seconds() == pytest.approx(seconds, abs=0.1)


async def test_a_receiver_may_name_the_moment_instead(server):
    moment = datetime.now(UTC) + timedelta(minutes=10)
    server.answer = answer("429 Too Many", "Retry-After: " + format_datetime(moment, usegmt=True))
    outcome = await post(server)
    assert isinstance(outcome, Throttled)
    assert outcome.after.total_seconds() == pytest.approx(600, abs=60)


@pytest.mark.parametrize(
    ("status", "code"), [("400 Bad", "http_400"), ("410 Gone", "http_410"), ("302 Found", "redirect")]
)
async def test_what_cannot_pass_is_dead_and_no_redirect_is_followed(server, status, code):
    server.answer = answer(status, f"Location: {server.url}")
    outcome = await post(server)
    assert isinstance(outcome, Dead)
    assert outcome.code == code
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["500 Oops", "502 Bad", "408 Timeout", "503 Unavailable"])
async def test_what_may_pass_is_tried_again(server, status):
    server.answer = answer(status)
    with pytest.raises(WebhookFailed, match=status[:3]):
        await post(server)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::a00:1]/",
        "http://[2002:a00:1::]/",
        "http://[fd12:3456::1]/",
        "http://[fe80::1]/",
        "http://0.0.0.0/",
    ],
)
async def test_addresses_of_our_own_network_are_refused_unless_allowed(url):
    outcome = await Webhook(url)(Message(CLAIMED), EmitContext(CLAIMED, 5))
    assert isinstance(outcome, Dead)
    assert outcome.code == "private_address"


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("100.64.0.1", False),
        ("192.168.1.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("64:ff9b:1::1", False),
        ("::127.0.0.1", False),
    ],
)
def test_an_address_is_public_or_not_whatever_it_is_wrapped_in(address, public):
    assert is_public(address) is public


@pytest.mark.parametrize("answers", [["10.0.0.5"], ["8.8.8.8", "127.0.0.1"], ["fd00::7"]])
async def test_a_name_of_which_any_address_is_private_is_refused_before_a_connection_is_made(monkeypatch, answers):
    resolve_to(monkeypatch, answers)
    outcome = await Webhook("https://partner.example/hook")(Message(CLAIMED), EmitContext(CLAIMED, 5))
    assert isinstance(outcome, Dead)
    assert outcome.code == "private_address"
    assert "partner.example" in str(outcome)


async def test_the_connection_goes_to_the_address_that_was_checked(server, monkeypatch):
    """A name that points elsewhere at its second look-up leads nowhere, because there is none."""
    port = server.url.rsplit(":", 1)[1]
    asked = resolve_to(monkeypatch, ["127.0.0.1"])
    webhook = Webhook(f"http://partner.example:{port}", allow_private=True)
    await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5))
    await webhook.aclose()
    [(_, headers, _)] = server.requests
    assert headers["host"].startswith("partner.example:")
    assert asked == ["partner.example"]


def by_name(server, **options) -> Webhook:
    port = server.url.rpartition(":")[2]
    return Webhook(f"http://partner.example:{port}", allow_private=True, **options)


async def test_a_name_is_reached_by_another_of_its_addresses_when_one_refuses(server, monkeypatch):
    """The resolver names them in the same order again and again: each try would end at the same one."""
    resolve_to(monkeypatch, ["127.0.0.2", "127.0.0.2", "127.0.0.1"])
    webhook = by_name(server)
    assert isinstance(await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5)), Delivered)
    resolve_to(monkeypatch, ["127.0.0.2", "127.0.0.3"])
    with pytest.raises(httpx.ConnectError):
        await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5))
    await webhook.aclose()
    assert len(server.requests) == 1


async def test_an_address_that_says_nothing_leaves_time_for_the_next(server, monkeypatch):
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    with socket.create_server(("127.0.0.2", port), backlog=0), ExitStack() as waiting:
        for _ in range(3):  # nobody accepts them, and there is no room for more
            held = waiting.enter_context(socket.socket())
            held.setblocking(False)
            held.connect_ex(("127.0.0.2", port))
        resolve_to(monkeypatch, ["127.0.0.2", "127.0.0.1"])
        webhook = by_name(server)
        async with asyncio.timeout(2):
            assert isinstance(await webhook(Message(CLAIMED), EmitContext(CLAIMED, 2)), Delivered)
        await webhook.aclose()


async def test_what_may_have_arrived_at_one_address_is_not_sent_to_the_next(server, monkeypatch):
    server.answer = ""
    resolve_to(monkeypatch, ["127.0.0.1", "127.0.0.2"])
    webhook = by_name(server)
    with pytest.raises(httpx.RemoteProtocolError):
        await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5))
    await webhook.aclose()
    assert len(server.requests) == 1


def resolve_to(monkeypatch, answers: list[str]) -> list[str]:
    """From now on every name has these addresses; answers the names that were asked for."""
    asked, resolve = [], asyncio.get_running_loop().getaddrinfo

    async def getaddrinfo(host, port, **options):
        found = str(host)
        if found.endswith(".example"):
            asked.append(found)
            return [(0, 0, 0, "", (address, port)) for address in answers]
        return await resolve(host, port, **options)

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def test_a_publisher_cannot_forge_what_the_request_says_of_itself(server):
    forged = {"idempotency-key": "x", "Host": "evil", "interlock-signature": "no", "transfer-encoding": "chunked"}
    claimed = CLAIMED._replace(headers=json.dumps({**forged, "x-own": "yes"}), message_id="ключ 1")
    webhook = Webhook(server.url, allow_private=True, secret="s")
    await webhook(Message(claimed), EmitContext(claimed, 5))
    await webhook.aclose()
    [(_, headers, body)] = server.requests
    assert headers["x-own"] == "yes"
    assert headers["idempotency-key"] == "%D0%BA%D0%BB%D1%8E%D1%87%201"
    assert headers["host"].startswith("127.0.0.1")
    assert headers["interlock-signature"].startswith("t=")
    assert json.loads(body) == {"id": 1}


async def test_of_a_long_answer_only_the_beginning_is_read(server):
    server.answer = f"HTTP/1.1 400 Bad\r\nContent-Length: {1 << 40}\r\n\r\n" + "x" * 100_000
    outcome = await post(server)
    assert isinstance(outcome, Dead)
    assert 500 <= len(str(outcome)) < 600


@pytest.mark.parametrize("body", ["", "taken"])
async def test_deliveries_share_a_connection(server, body):
    """Each would cost a handshake otherwise, and a port that stays taken for a while."""
    server.keeps, server.answer = True, f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    webhook = Webhook(server.url, allow_private=True)
    for _ in range(3):
        await webhook(Message(CLAIMED), EmitContext(CLAIMED, 5))
    await webhook.aclose()
    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize(("status", "outcome"), [(200, Delivered), (429, Throttled), (400, Dead)])
async def test_what_a_receiver_said_counts_even_if_its_answer_never_ends(server, monkeypatch, status, outcome):
    monkeypatch.setattr("interlock.outbox.emitters.webhook.LONGEST_READING", 0.05)
    server.keeps, server.answer = True, f"HTTP/1.1 {status} X\r\nContent-Length: 100\r\n\r\nbecause"
    async with asyncio.timeout(30):
        assert isinstance(await post(server), outcome)


async def test_reading_an_answer_leaves_time_to_say_that_it_came(server, monkeypatch):
    monkeypatch.setattr("interlock.outbox.emitters.webhook.LONGEST_READING", 60)
    server.keeps, server.answer = True, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbecause"
    webhook = Webhook(server.url, allow_private=True)
    async with asyncio.timeout(2):
        assert isinstance(await webhook(Message(CLAIMED), EmitContext(CLAIMED, 2)), Delivered)
    await webhook.aclose()


@pytest.mark.parametrize("status", [200, 400])
async def test_an_answer_is_not_unpacked(server, status):
    """A few bytes may hold gigabytes."""
    packed = gzip.compress(b"x" * 20_000_000)
    head = f"HTTP/1.1 {status} X\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    server.answer = head.encode() + packed
    tracemalloc.start()
    try:
        outcome = await post(server)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Delivered) or "packed as gzip" in str(outcome)
    assert server.requests[0][1]["accept-encoding"] == "identity"


async def test_a_name_beyond_ascii_is_resolved_as_it_is_asked_for(monkeypatch):
    """The resolver alone would look up another name (strasse.example) than the one in the request."""
    asked = resolve_to(monkeypatch, ["10.0.0.1"])
    outcome = await Webhook("https://stra\u00dfe.example/")(Message(CLAIMED), EmitContext(CLAIMED, 5))
    assert isinstance(outcome, Dead)
    assert asked == ["xn--strae-oqa.example"]


async def test_a_header_that_no_request_can_carry_is_encoded_or_ends_the_message_and_not_the_topic(server):
    webhook = Webhook(server.url, allow_private=True)
    odd, unfit = (
        CLAIMED._replace(headers=json.dumps(headers)) for headers in ({"x-name": "Zoë\r\nx-evil: 1"}, {"x name": "1"})
    )
    assert isinstance(await webhook(Message(odd), EmitContext(odd, 5)), Delivered)
    outcome = await webhook(Message(unfit), EmitContext(unfit, 5))
    await webhook.aclose()
    assert (outcome.code, "x name" in str(outcome)) == ("unfit_header", True)
    [(_, headers, _)] = server.requests
    assert (headers["x-name"], "x-evil" in headers) == ("Zo%C3%AB%0D%0Ax-evil:%201", False)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Webhook("ftp://ada:s3cret@partner.example"),
        lambda: Webhook("https://partner.example", headers={"Authorization": "s3cret\n"}),
        lambda: RedisStream("redis+cluster://ada:s3cret@redis.example"),
    ],
)
def test_what_is_refused_is_named_without_its_secrets(declare):
    with pytest.raises(InvalidOption) as raised:
        declare()
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("secret", ["", b"", 5])
def test_a_secret_that_signs_nothing_is_refused(secret):
    """One that is empty, as where a variable of the environment is missing, is known to everybody."""
    with pytest.raises(InvalidOption):
        Webhook("https://partner.example", secret=secret)


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://"])
def test_an_address_that_is_none_is_refused_when_it_is_declared(url):
    with pytest.raises(InvalidOption):
        Webhook(url)


async def test_a_stream_gets_one_entry_with_the_message_id(valkey_url):
    emitter = RedisStream(valkey_url, max_length=100)
    outcome = await emitter(Message(CLAIMED), EmitContext(CLAIMED, 5))
    await emitter.aclose()
    client = Redis.from_url(valkey_url, decode_responses=True)
    [(entry, fields)] = await client.xrange("order.paid")
    await client.aclose()
    assert outcome.record_id == entry
    assert (fields["message_id"], fields["payload"], fields["key"]) == ("m-7", '{"id": 1}', "k")
