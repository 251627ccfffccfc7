"""Delivery to a stream of Redis or Valkey."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING

from interlock.errors import InvalidOption
from interlock.model.message import Delivered
from interlock.model.packages import require
from interlock.observe.redact import without_password

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from interlock.outbox.message import EmitContext, Message


class RedisStream:
    """An emitter: `app.outbox.add_emitter("order.*", RedisStream("redis://…"))`.

    The stream is named by the topic unless `stream` says otherwise. Each entry carries `message_id`, by which a
    consumer knows a message that comes twice. `max_length` keeps the stream at about that many entries.
    """

    def __init__(self, url: str, *, stream: str | None = None, max_length: int | None = None) -> None:
        if not str(url).startswith(("redis://", "rediss://", "unix://")):
            expected = "an address that begins with redis://, rediss:// or unix://"
            raise InvalidOption(option="url", found=without_password(str(url)), expected=expected)
        require("redis", needed_by="a Redis stream")
        self._url, self._stream, self._max_length = url, stream, max_length
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Redis] = weakref.WeakKeyDictionary()

    async def __call__(self, message: Message, context: EmitContext) -> Delivered:
        fields: dict[str, bytes | str] = {
            "message_id": context.idempotency_key,
            "topic": message.topic,
            "payload": message.body(),
            "headers": message.claimed.headers,
        }
        if message.key is not None:
            fields["key"] = message.key
        if message.trace is not None:
            fields["traceparent"] = message.trace
        entry = await self._client().xadd(
            self._stream or message.topic,
            fields,  # type: ignore[arg-type]
            maxlen=self._max_length,
        )
        return Delivered(entry.decode() if isinstance(entry, bytes) else str(entry))

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> Redis:
        from redis.asyncio import Redis  # noqa: PLC0415  only those who use it have it

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = Redis.from_url(self._url)
        return self._clients[loop]
