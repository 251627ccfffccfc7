"""Submits to a runner (`interlock runner`) over HTTP: names the execution, signed; the runner reads the rest itself.

The signature keeps others from naming work to the runner. It hides nothing and does not prove who answers: that is for
TLS, so an address without it is taken only on the loopback, or where one says that the network is trusted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
import weakref
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.dispatch.submitters.protocol import NoRoom
from interlock.errors import InvalidOption
from interlock.model.packages import require
from interlock.model.posted import Posted, encode
from interlock.model.signature import HEADER, signature

if TYPE_CHECKING:
    import httpx

    from interlock.dispatch.submitters.protocol import Submission

ACCEPTED = 202
FULL, TRAIN_UNKNOWN = 503, 422
WAITS = {FULL, TRAIN_UNKNOWN, 429}
"""With a time to wait. A 503 without it comes from somebody on the way, who has lost the runner."""
LONGEST_REASON = 500
SHORTEST_PAUSE, LONGEST_PAUSE = 1, 60


class SubmitRefused(Exception):
    """The runner did not take it, or did not answer; says what it said."""


class HttpSubmitter:
    """`app.add_submitter(HttpSubmitter("https://runner:8443", secret=…), trains=[render])`.

    The secret is the runner's `runner_secret`. Redirects and proxies of the environment are not followed.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str,
        timeout: timedelta = timedelta(seconds=10),
        allow_plain_http: bool = False,
    ) -> None:
        require("httpx", needed_by="HttpSubmitter")
        self._url = _checked_url(url, plain=allow_plain_http)
        self._secret, self._timeout = _checked_secret(secret), _checked_timeout(timeout)
        self.name = str(self._url).rstrip("/")
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"HttpSubmitter({self.name!r})"

    async def submit(self, submission: Submission) -> None:
        import httpx  # noqa: PLC0415  only those who use runners need it

        body = encode(Posted(submission.execution_id, submission.train, submission.attempt, submission.token))
        headers = {"Content-Type": "application/json", HEADER: signature(self._secret, body, int(time.time()))}
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client().stream("POST", f"{self.name}/executions", content=body, headers=headers) as response,
            ):
                await _refuse_unless_taken(response)
        except (httpx.HTTPError, OSError) as error:  # a TimeoutError is an OSError
            said = str(error) or f"no answer within {self._timeout:g} s"
            raise SubmitRefused(f"{self.name}: {type(error).__name__}: {said}") from error

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        import httpx  # noqa: PLC0415  see above

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=self._timeout)
        return self._clients[loop]


def _checked_secret(secret: object) -> bytes:
    if not isinstance(secret, str) or not secret.strip():
        found = f"a {type(secret).__name__} that is not shown"
        raise InvalidOption(option="secret", found=found, expected="the runner_secret of the runner, a text")
    return secret.encode()


def _checked_timeout(timeout: object) -> float:
    if not isinstance(timeout, timedelta) or timeout <= timedelta(0):
        raise InvalidOption(option="timeout", found=timeout, expected="a timedelta of more than zero")
    return timeout.total_seconds()


async def _refuse_unless_taken(response: httpx.Response) -> None:
    status, after = response.status_code, response.headers.get("Retry-After", "")
    if status == ACCEPTED:
        return
    if status in WAITS and after.isascii() and after.isdigit():
        seconds = min(max(int(after[:9]), SHORTEST_PAUSE), LONGEST_PAUSE)
        raise NoRoom(timedelta(seconds=seconds), or_notice=status != TRAIN_UNKNOWN, train_only=status != FULL)
    said = ""
    async for piece in response.aiter_bytes(LONGEST_REASON):
        said = piece[:LONGEST_REASON].decode("utf-8", "replace")
        break
    raise SubmitRefused(f"HTTP {status} from {response.url.copy_with(path='/')}: {said}")


def _checked_url(url: str, *, plain: bool) -> httpx.URL:
    import httpx  # noqa: PLC0415  see above

    try:
        found = httpx.URL(url)
    except (TypeError, httpx.InvalidURL) as error:
        raise InvalidOption(option="url", found=url, expected=f"the address of a runner ({error})") from error
    if found.userinfo or found.query or found.fragment:
        expected = "an address without user, password, query and fragment, for example https://runner:8443"
        raise InvalidOption(option="url", found=f"{found.scheme}://{found.host}…", expected=expected)
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidOption(option="url", found=url, expected="an address that begins with https:// or http://")
    if found.scheme == "http" and not plain and not _is_loopback(found.host):
        expected = "https, because http hides nothing; allow_plain_http=True where the network is trusted"
        raise InvalidOption(option="url", found=url, expected=expected)
    return found


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
