"""Delivery to an HTTP address: signed, in time, with an idempotency key, and never to an address of our own network.

The name is resolved here and the connection goes to the address that was checked, so a name that points elsewhere a
moment later cannot lead it astray. Where no connection can be made to one of its addresses, the next is tried.
Redirects are not followed: they would lead past the check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from interlock.errors import InvalidOption
from interlock.model.message import Dead, Delivered, Throttled
from interlock.model.packages import require
from interlock.model.signature import HEADER, signature
from interlock.observe.redact import without_password

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from interlock.model.outcome import Outcome
    from interlock.outbox.message import EmitContext, Message

OK, MULTIPLE_CHOICES, BAD_REQUEST, SERVER_ERROR = 200, 300, 400, 500
TOO_MANY, UNAVAILABLE = 429, 503
PASSING = {408, 425}
DEFAULT_THROTTLE = timedelta(seconds=30)
SHORTEST_THROTTLE, LONGEST_THROTTLE = timedelta(seconds=1), timedelta(days=1)
LONGEST_REASON, LONGEST_ANSWER = 500, 64 * 1024
LONGEST_READING = 1.0  # seconds after the head of the answer
READABLE = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")
OURS = {"host", "content-length", "transfer-encoding", "connection", "idempotency-key", HEADER.lower()}
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class WebhookFailed(Exception):
    """The receiver answered with an error that may pass."""


class PrivateAddress(Exception):
    """The name leads to an address that is not on the public internet."""


class UnfitHeader(Exception):
    """The message has a header that no HTTP request can carry."""


class Webhook:
    """An emitter: `app.outbox.add_emitter("order.*", Webhook("https://…", secret="…"))`.

    With a secret every request carries `Interlock-Signature: t=<seconds>,v1=<hex>`, the HMAC-SHA256 of
    `<seconds>.<body>`. `record_header` names the header of the answer that holds the receiver's record id.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        record_header: str | None = None,
        allow_private: bool = False,
    ) -> None:
        require("httpx", needed_by="a webhook")
        import httpx  # noqa: PLC0415  only those who use webhooks need it

        try:
            self._url = httpx.URL(url)
        except (TypeError, httpx.InvalidURL) as error:
            raise InvalidOption(option="url", found=_shown(url), expected=f"an address ({error})") from error
        # As it goes over the wire: the resolver would spell a name beyond ASCII in its own way.
        self._host = self._url.raw_host.decode()
        if self._url.scheme not in ("http", "https") or not self._host:
            expected = "an address that begins with https:// or http://"
            raise InvalidOption(option="url", found=_shown(url), expected=expected)
        for name, value in (headers or {}).items():
            if not _is_fit(name, value):  # which may be a password
                raise InvalidOption(option="headers", found=name, expected="names and values as HTTP allows them")
        if secret is not None and not (secret and isinstance(secret, str | bytes)):
            raise InvalidOption(
                option="secret", found=type(secret).__name__, expected="a text that is not empty, or None"
            )
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._headers, self._record_header, self._allow_private = dict(headers or {}), record_header, allow_private
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    async def __call__(self, message: Message, context: EmitContext) -> Outcome:
        import httpx  # noqa: PLC0415  see above

        try:
            addresses = await self._resolve()
            headers = self._request_headers(message, context)
        except PrivateAddress as refused:
            return Dead("private_address", str(refused))
        except UnfitHeader as unfit:
            return Dead("unfit_header", str(unfit))
        for address in addresses[:-1]:
            # Nothing was sent yet. And half of the time is left to the others.
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._post(address, message, headers, context, connect=0.5)
        return await self._post(addresses[-1], message, headers, context, connect=1)

    async def _post(
        self, address: str, message: Message, headers: httpx.Headers, context: EmitContext, *, connect: float
    ) -> Outcome:
        """`connect` is the part of the time that is left in which a connection has to be made."""
        import httpx  # noqa: PLC0415  see above

        left = max(context.remaining().total_seconds(), 0.001)
        request = self._client().stream(
            "POST",
            self._url.copy_with(host=address),
            content=message.body(),
            headers=headers,
            timeout=httpx.Timeout(left, connect=left * connect),
            extensions={"sni_hostname": self._host},
        )
        async with request as response:
            return self._outcome(response, await _beginning(response, context.remaining().total_seconds() / 2))

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415  see above

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # A proxy of the environment would connect to an address that nobody checked.
            self._clients[loop] = httpx.AsyncClient(follow_redirects=False, trust_env=False)
        return self._clients[loop]

    async def _resolve(self) -> list[str]:
        """All addresses of the name, in the resolver's order; if one of them is private, none is good."""
        port = self._url.port or (443 if self._url.scheme == "https" else 80)
        found = await asyncio.get_running_loop().getaddrinfo(self._host, port)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        if not self._allow_private:
            for address in addresses:
                _refuse_private(self._host, address)
        return addresses

    def _request_headers(self, message: Message, context: EmitContext) -> httpx.Headers:
        """Whoever publishes says what the receiver reads, and nothing about the request itself or who signed it."""
        import httpx  # noqa: PLC0415  see above

        headers = httpx.Headers({"Content-Type": "application/json", "Accept-Encoding": "identity"})
        for name, value in message.headers.items():
            if not HEADER_NAME.fullmatch(name):
                raise UnfitHeader(f"{name!r} cannot be the name of a header of HTTP; publish it under another")
            if name.lower() not in OURS:
                headers[name] = value if HEADER_VALUE.fullmatch(value) else quote(value, safe=READABLE)
        headers.update(self._headers)
        headers["Host"] = self._url.netloc.decode()
        headers["Idempotency-Key"] = quote(context.idempotency_key, safe=READABLE)
        headers["Interlock-Topic"] = quote(message.topic, safe=READABLE)
        headers["Interlock-Redelivery"] = str(context.redelivery).lower()
        if message.trace is not None:
            headers["traceparent"] = message.trace
        if self._secret is not None:
            headers[HEADER] = signature(self._secret, message.body(), int(time.time()))
        return headers

    def _outcome(self, response: httpx.Response, body: str) -> Outcome:
        status = response.status_code
        reason = f"HTTP {status}: {body}"
        if OK <= status < MULTIPLE_CHOICES:
            record = response.headers.get(self._record_header) if self._record_header else None
            return Delivered(record)
        after = _retry_after(response.headers.get("Retry-After"))
        if status == TOO_MANY or (status == UNAVAILABLE and after is not None):
            return Throttled(DEFAULT_THROTTLE if after is None else after, reason)
        if status in PASSING or status >= SERVER_ERROR:
            raise WebhookFailed(reason)
        return Dead("redirect" if status < BAD_REQUEST else f"http_{status}", reason)


def _shown(url: object) -> object:
    return without_password(url) if isinstance(url, str) else url


def _is_fit(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, str):
        return False
    return bool(HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value))


def _refuse_private(host: str, address: str) -> None:
    if not is_public(address):
        raise PrivateAddress(f"{host} leads to {address}, which is not on the public internet; allow_private allows it")


def is_public(address: str) -> bool:
    """Whether it is on the public internet, also where an IPv6 address only wraps an IPv4 address."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local:
            return False
        found = _wrapped(found) or found
    return found.is_global and not (found.is_multicast or found.is_reserved)


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a mapped, a 6to4 or a translated (NAT64) address stands for."""
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


async def _beginning(response: httpx.Response, left: float) -> str:
    """So much of the answer as a reason needs: a receiver must not be able to fill this process, nor to hold it up.

    An answer that was read to its end leaves its connection to the next delivery. None is unpacked: a few bytes may
    hold gigabytes. And reading leaves time to answer, because the status says already what came of it.
    """
    import httpx  # noqa: PLC0415  see above

    found = b""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(min(LONGEST_READING, left)):
            async for piece in response.aiter_raw():
                found += piece
                if len(found) > LONGEST_ANSWER:
                    break
    if packed := response.headers.get("Content-Encoding"):
        return f"an answer packed as {packed[:LONGEST_REASON]}, although none was asked for"
    return found[:LONGEST_REASON].decode("utf-8", "replace")


def _retry_after(value: str | None) -> timedelta | None:
    """Seconds or a date; what cannot be read counts as not said, so does a moment that is over: clocks differ."""
    if value is None:
        return None
    try:
        after = timedelta(seconds=float(value))
    except (ValueError, OverflowError):
        try:
            after = parsedate_to_datetime(value) - datetime.now(UTC)
        except (ValueError, TypeError):
            return None
    return None if after < SHORTEST_THROTTLE else min(after, LONGEST_THROTTLE)
