"""`app.outbox`: publish in your own transaction, declare emitters, look at messages and decide about them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from interlock.errors import InvalidOption, UnknownMessage
from interlock.observe.events.outbox import MessagesRedriven, TopicParked
from interlock.outbox.doctor import examine
from interlock.outbox.emitter import EmitterOptions, Emitters
from interlock.outbox.operate import Act, park, redrive
from interlock.outbox.publish import Draft, checked_message
from interlock.runtime.portal import portal
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import run, run_blocking
from interlock.store.outbox import OutboxMessages
from interlock.store.outbox_review import OutboxReview
from interlock.store.sql import Catalog
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from interlock.model.message import MessageDetail, MessageRow, NewMessage, Published, TopicStats
    from interlock.observe.bus import Emit
    from interlock.outbox.doctor import Finding
    from interlock.outbox.emitter import OnDead
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.trains.options import Backoff

F = TypeVar("F", bound="Callable[..., Any]")

MOST_AT_ONCE = 10_000


class Outbox:
    """Messages that are written with what they tell about, and delivered at least once."""

    def __init__(
        self,
        schema: Callable[[], str],
        database: Callable[[], Awaitable[Database]],
        *,
        clock: Callable[[], Clock],
        max_bytes: Callable[[], int],
        emit: Emit,
    ) -> None:
        self.emitters = Emitters()
        self._schema, self._database, self._clock = schema, database, clock
        self._max_bytes, self._emit = max_bytes, emit

    def emitter(
        self,
        topic: str,
        *,
        timeout: float | timedelta | None = None,
        max_attempts: int | None = None,
        max_crashes: int | None = None,
        concurrency: int | None = None,
        idempotency_window: timedelta | None = None,
        backoff: Backoff | None = None,
        on_dead: OnDead = "hold",
        payload: Any = None,
    ) -> Callable[[F], F]:
        """Let the function deliver the messages of a topic, or of a pattern such as `order.*`.

        It is called with the message, and with the context if it takes two arguments. Returning is delivery; see
        `Delivered`, `Retry`, `Snooze` and `Dead` for what else it may say. `payload` is a type to read payloads as.
        """
        options = EmitterOptions(
            timeout=_duration(timeout),
            max_attempts=max_attempts,
            max_crashes=max_crashes,
            concurrency=concurrency,
            idempotency_window=idempotency_window,
            backoff=backoff,
            on_dead=on_dead,
            payload=payload,
        )
        return lambda function: self._declared(topic, function, options)

    def batch_emitter(
        self,
        topic: str,
        size: int = 100,
        *,
        timeout: float | timedelta | None = None,
        max_attempts: int | None = None,
        concurrency: int | None = None,
        backoff: Backoff | None = None,
        on_dead: OnDead = "hold",
        payload: Any = None,
    ) -> Callable[[F], F]:
        """Like `emitter`, but the function gets a list of up to `size` messages (and one of contexts).

        It answers a list with one outcome per message, or one outcome for all. Of a key only what was delivered
        without a gap counts: the rest is sent again, in order.
        """
        options = EmitterOptions(
            timeout=_duration(timeout),
            max_attempts=max_attempts,
            concurrency=concurrency,
            backoff=backoff,
            on_dead=on_dead,
            payload=payload,
            batch=size,
        )
        return lambda function: self._declared(topic, function, options)

    def add_emitter(self, topic: str, function: Callable[..., Any], **options: Any) -> None:
        """The same as the decorator, for emitters that are objects, such as `Webhook(...)`."""
        self.emitter(topic, **options)(function)

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
        return await run(adapt(conn), self._messages().publish(messages, now=self._now())) if messages else []

    def publish_many(self, conn: object, drafts: Sequence[Draft]) -> list[Published]:
        """The blocking twin of `apublish_many`."""
        messages = self._checked(drafts)
        steps = self._messages().publish(messages, now=self._now())
        return run_blocking(adapt_blocking(conn), steps) if messages else []

    async def afind_pending(self, topic: str | None = None, limit: int = 100) -> list[MessageRow]:
        """What is due and was never tried. For inspection only: it claims nothing, others find the same."""
        return await self._find(topic, limit, retries=False)

    async def afind_retry_ready(self, topic: str | None = None, limit: int = 100) -> list[MessageRow]:
        """What failed and is due again. For inspection only: it claims nothing, others find the same."""
        return await self._find(topic, limit, retries=True)

    async def alist(
        self, *, state: str | None = None, topic: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[MessageRow]:
        """Messages, the newest first."""
        database = await self._database()
        async with database.connection() as conn:
            return await OutboxReview(database.sql).list(conn, state=state, topic=topic, before=before, limit=limit)

    async def aget(self, message: int | str) -> MessageDetail:
        """A message by its number or its message id, with its history."""
        database = await self._database()
        async with database.connection() as conn:
            found = await OutboxReview(database.sql).get(conn, message)
        if found is None:
            raise UnknownMessage(name=str(message))
        return found

    async def aredrive(
        self,
        *ids: int,
        actor: str,
        topic: str | None = None,
        failure: str | None = None,
        everything: bool = False,
        limit: int = MOST_AT_ONCE,
        rate: float | None = None,
        note: str | None = None,
        via: str = "code",
        dry_run: bool = False,
    ) -> dict[int, bool]:
        """Let dead messages and those under review be delivered again; answers which come out of order.

        Choose by number, by topic or failure, or `everything=True`. With a rate, so many become due per second.
        """
        if not (ids or topic or failure or everything):
            raise InvalidOption(option="redrive", found="nothing", expected="ids, a topic, a failure or everything")
        if rate is not None and rate <= 0:
            raise InvalidOption(option="rate", found=rate, expected="messages per second, above zero")
        chosen = {"ids": list(ids) or None, "topic": topic, "failure": failure, "limit": limit, "rate": rate}
        act = Act(actor=checked_name("actor", actor), via=via, note=note, dry_run=dry_run)
        redriven = await redrive(await self._database(), act, chosen, now=self._now())
        if redriven and not dry_run:
            late = sum(redriven.values())
            self._emit(MessagesRedriven(count=len(redriven), actor=actor, out_of_order=late))
        return redriven

    async def apark(
        self, topic: str, *, actor: str, parked: bool = True, note: str | None = None, via: str = "code"
    ) -> bool:
        """Let nobody claim a topic, or let it be claimed again; False says that it was so already."""
        act = Act(actor=checked_name("actor", actor), via=via, note=note)
        changed = await park(await self._database(), act, checked_name("topic", topic), parked=parked)
        if changed:
            self._emit(TopicParked(topic=topic, parked=parked, actor=actor))
        return changed

    async def astats(self) -> list[TopicStats]:
        """How each topic is doing."""
        database = await self._database()
        async with database.connection() as conn:
            return await OutboxReview(database.sql).stats(conn, now=self._now())

    async def adoctor(
        self, *, expected_workers: int | None = None, window: timedelta = timedelta(hours=1)
    ) -> list[Finding]:
        """What looks wrong, each with what to do about it."""
        return await examine(await self._database(), window=window, expected_workers=expected_workers, now=self._now())

    def redrive(self, *ids: int, **options: Any) -> dict[int, bool]:
        """The blocking twin of `aredrive`."""
        return portal.call(self.aredrive, *ids, **options)

    def park(self, topic: str, *, actor: str, parked: bool = True) -> bool:
        """The blocking twin of `apark`."""
        return portal.call(self.apark, topic, actor=actor, parked=parked)

    def stats(self) -> list[TopicStats]:
        """The blocking twin of `astats`."""
        return portal.call(self.astats)

    def _declared(self, topic: str, function: F, options: EmitterOptions) -> F:
        self.emitters.declare(topic, function, options)
        return function

    def _checked(self, drafts: Sequence[Draft]) -> list[NewMessage]:
        return [checked_message(draft, max_bytes=self._max_bytes()) for draft in drafts]

    def _messages(self) -> OutboxMessages:
        return OutboxMessages(Catalog(self._schema()))

    def _now(self) -> Any:
        return self._clock().injected()

    async def _find(self, topic: str | None, limit: int, *, retries: bool) -> list[MessageRow]:
        database = await self._database()
        async with database.connection() as conn:
            return await OutboxReview(database.sql).find(
                conn, retries=retries, topic=topic, limit=limit, now=self._now()
            )


def _only(published: Sequence[Published]) -> str | None:
    return published[0].message_id if published else None


def _duration(found: float | timedelta | None) -> timedelta | None:
    return found if found is None or isinstance(found, timedelta) else timedelta(seconds=found)
