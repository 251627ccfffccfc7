"""Publishing on the user's own connection, whatever client it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.outbox.publish import Draft, checked_message
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import run, run_blocking
from interlock.store.outbox import OutboxMessages
from interlock.store.sql import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from interlock.model.message import NewMessage, Published
    from interlock.runtime.clock import Clock


class Publishing:
    """The part of `app.outbox` that writes in transactions of others and opens nothing of its own."""

    def __init__(self, schema: Callable[[], str], clock: Callable[[], Clock], max_bytes: Callable[[], int]) -> None:
        self._schema, self._clock, self._max_bytes = schema, clock, max_bytes

    async def apublish(
        self,
        conn: object,
        topic: str,
        payload: Any = None,
        *,
        key: str | None = None,
        partition: str | None = None,
        message_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: timedelta | None = None,
        expires: timedelta | None = None,
    ) -> str | None:
        """Write a message in the transaction of this connection; answers its id, or None if that exists already."""
        draft = Draft(topic, payload, key, partition, message_id, headers, delay, expires)
        return _only(await self.apublish_many(conn, [draft]))

    def publish(
        self,
        conn: object,
        topic: str,
        payload: Any = None,
        *,
        key: str | None = None,
        partition: str | None = None,
        message_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        delay: timedelta | None = None,
        expires: timedelta | None = None,
    ) -> str | None:
        """The blocking twin of `apublish`."""
        draft = Draft(topic, payload, key, partition, message_id, headers, delay, expires)
        return _only(self.publish_many(conn, [draft]))

    async def apublish_many(self, conn: object, drafts: Sequence[Draft]) -> list[Published]:
        """Write messages in one round trip; those whose id exists already are missing from the answer."""
        messages = self._checked(drafts)
        return (
            await run(adapt(conn), self._messages().publish(messages, now=self._clock().injected())) if messages else []
        )

    def publish_many(self, conn: object, drafts: Sequence[Draft]) -> list[Published]:
        """The blocking twin of `apublish_many`."""
        messages = self._checked(drafts)
        steps = self._messages().publish(messages, now=self._clock().injected())
        return run_blocking(adapt_blocking(conn), steps) if messages else []

    def _checked(self, drafts: Sequence[Draft]) -> list[NewMessage]:
        return [checked_message(draft, max_bytes=self._max_bytes()) for draft in drafts]

    def _messages(self) -> OutboxMessages:
        return OutboxMessages(Catalog(self._schema()))


def _only(published: Sequence[Published]) -> str | None:
    return published[0].message_id if published else None
