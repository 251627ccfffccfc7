"""The endpoint of a runner: `POST /executions`, signed, names an execution that this server is to run.

No input travels: it stands in the row, which the runner reads itself. The signature keeps out who does not know the
secret; it hides nothing, and needs no more than that.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from interlock.errors import InvalidSetting
from interlock.model.failure import kind_of
from interlock.model.posted import decode
from interlock.model.signature import HEADER, is_signed
from interlock.observe.events.probe import RunnerListening, TakeOverFailed
from interlock.web import http
from interlock.web.http import HttpServer, failing, parse_address
from interlock.worker.intake import Answer

if TYPE_CHECKING:
    from interlock.model.posted import Posted
    from interlock.observe.bus import Emit
    from interlock.web.http import Address, Request
    from interlock.worker.intake import Intake

PATH = "/executions"
TOLERANCE = 300.0
"""Seconds that the clocks of two servers may differ; an old message takes nothing anyway."""
_REFUSED = {
    Answer.NOTHING: failing(HTTPStatus.CONFLICT, "there is nothing to take: it is gone, cancelled or taken already"),
    Answer.BUSY: failing(HTTPStatus.SERVICE_UNAVAILABLE, "no slot is free", Retry_After="1"),
    Answer.AT_LIMIT: failing(
        HTTPStatus.TOO_MANY_REQUESTS, "the train runs here as often as its concurrency allows", Retry_After="1"
    ),
    Answer.UNKNOWN_TRAIN: failing(
        HTTPStatus.UNPROCESSABLE_ENTITY, "this runner does not know the train, or lacks its tags", Retry_After="10"
    ),
}


class Listening(NamedTuple):
    """Where a runner takes work, and how it knows who submits."""

    address: Address
    secret: bytes


def runner_at(text: str, secret: str | None) -> Listening:
    """A wrong address is refused before anything is opened. Without a secret anybody could name work to run."""
    address = parse_address(text, "listen")
    if secret is None:
        expected = (
            "the secret of those who submit to this runner (INTERLOCK_RUNNER_SECRET); make one: openssl rand -hex 32"
        )
        raise InvalidSetting(setting="runner_secret", found=None, expected=expected, origin="default")
    return Listening(address, secret.encode())


class RunnerEndpoint(HttpServer):
    """Started before the worker and stopped after it, so that it says `busy` while the worker drains."""

    name = "listen"

    def __init__(self, at: Listening, intake: Intake, *, emit: Emit) -> None:
        super().__init__(at.address)
        self._intake, self._secret, self._emit = intake, at.secret, emit

    def listening(self) -> None:
        self._emit(RunnerListening(host=self.address.host, port=self.address.port))

    async def answer(self, request: Request) -> http.Answer:
        if request.path != PATH:
            return failing(HTTPStatus.NOT_FOUND, f"there is {PATH}")
        if request.method != "POST":
            return failing(HTTPStatus.METHOD_NOT_ALLOWED, "only POST")
        found = request.headers.get(HEADER.lower(), "")
        if not is_signed(self._secret, request.body, found, now=time.time(), tolerance=TOLERANCE):
            return failing(HTTPStatus.UNAUTHORIZED, "the signature is missing, wrong, or older than five minutes")
        try:
            posted = decode(request.body)
        except msgspec.DecodeError as error:
            return failing(HTTPStatus.BAD_REQUEST, f"this names no execution: {error}")
        return await self._take(posted)

    async def _take(self, posted: Posted) -> http.Answer:
        try:
            found = await self._intake.take(posted)
        except Exception as error:  # noqa: BLE001  whatever the database has is for both sides to know
            self._emit(TakeOverFailed(execution_id=posted.execution_id, train=posted.train, error=error))
            return failing(HTTPStatus.INTERNAL_SERVER_ERROR, f"it could not be taken over: {kind_of(error)}")
        if found is Answer.TAKEN:
            return http.Answer(HTTPStatus.ACCEPTED, {"status": "taken", "execution_id": posted.execution_id})
        return _REFUSED[found]
