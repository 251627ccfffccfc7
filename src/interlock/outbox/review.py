"""Looking at messages, and deciding about them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, UnknownMessage
from interlock.model.act import Permission, actor_named
from interlock.model.lifecycle import OutboxState
from interlock.observe.events.outbox import MessagesRedriven, TopicParked
from interlock.outbox.doctor import examine
from interlock.outbox.operate import Act, park, redrive
from interlock.outbox.publish import checked_topic
from interlock.runtime.portal import portal
from interlock.store.outbox_review import OutboxReview
from interlock.trains.names import checked_name
from interlock.trains.options import checked_count

if TYPE_CHECKING:
    from builtins import list as listing
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.model.act import Actor
    from interlock.model.message import MessageDetail, MessageRow, TopicStats
    from interlock.observe.bus import Emit
    from interlock.outbox.doctor import Finding
    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database

MOST_AT_ONCE = 10_000


class Reviewing:
    """The part of `app.outbox` for operators."""

    def __init__(
        self,
        database: Callable[[], Awaitable[Database]],
        clock: Callable[[], Clock],
        settings: Callable[[], OutboxSettings],
        emit: Emit,
    ) -> None:
        self._database, self._clock, self._settings, self._emit = database, clock, settings, emit

    async def afind_pending(self, topic: str | None = None, limit: int = 100) -> listing[MessageRow]:
        """What is due and was never tried. For inspection only: it claims nothing, others find the same."""
        return await self._find(topic, limit, retries=False)

    async def afind_retry_ready(self, topic: str | None = None, limit: int = 100) -> listing[MessageRow]:
        """What failed and is due again. For inspection only: it claims nothing, others find the same."""
        return await self._find(topic, limit, retries=True)

    async def alist(
        self, *, state: str | None = None, topic: str | None = None, before: int | None = None, limit: int = 100
    ) -> listing[MessageRow]:
        """Messages, the newest first."""
        checked_count("limit", limit)
        if state is not None and state not in set(OutboxState):
            raise InvalidOption(option="state", found=state, expected=" | ".join(OutboxState))
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
        *messages: int | str,
        actor: Actor | str,
        topic: str | None = None,
        failure: str | None = None,
        everything: bool = False,
        limit: int = MOST_AT_ONCE,
        rate: float | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> dict[int, bool]:
        """Let dead messages and those under review be delivered again; answers which come out of order.

        Choose by number or message id, by topic or failure, or `everything=True`. With a rate, so many become due per
        second.
        """
        if not (messages or topic or failure or everything):
            raise InvalidOption(option="redrive", found="nothing", expected="ids, a topic, a failure or everything")
        chosen = {**_ids(messages), "topic": topic, "failure": failure}
        chosen |= {"limit": checked_count("limit", limit), "rate": _checked_rate(rate)}
        by = _permitted(actor, Permission.RESOLVE)
        act = Act(actor=by.name, via=by.via, note=note, dry_run=dry_run)
        redriven = await redrive(await self._database(), act, chosen, now=self._now())
        if redriven and not dry_run:
            late = sum(redriven.values())
            self._emit(MessagesRedriven(count=len(redriven), actor=by.name, out_of_order=late))
        return redriven

    async def apark(self, topic: str, *, actor: Actor | str, parked: bool = True, note: str | None = None) -> bool:
        """Let nobody claim a topic, or let it be claimed again; False says that it was so already."""
        by = _permitted(actor, Permission.PAUSE)
        act = Act(actor=by.name, via=by.via, note=note)
        changed = await park(await self._database(), act, checked_topic(topic), parked=parked)
        if changed:
            self._emit(TopicParked(topic=topic, parked=parked, actor=by.name))
        return changed

    async def astats(self) -> listing[TopicStats]:
        """How each topic is doing."""
        database = await self._database()
        async with database.connection() as conn:
            return await OutboxReview(database.sql).stats(conn, now=self._now())

    async def adoctor(
        self, *, expected_workers: int | None = None, window: timedelta = timedelta(hours=1)
    ) -> listing[Finding]:
        """What looks wrong, each with what to do about it.

        `expected_workers` is how many should serve each partition; unsaid, the setting `outbox_expected_workers`.
        """
        if expected_workers is None:
            expected_workers = self._settings().outbox_expected_workers
        return await examine(await self._database(), window=window, expected_workers=expected_workers, now=self._now())

    def find_pending(self, topic: str | None = None, limit: int = 100) -> listing[MessageRow]:
        """The blocking twin of `afind_pending`: it only looks."""
        return portal.call(self.afind_pending, topic, limit)

    def find_retry_ready(self, topic: str | None = None, limit: int = 100) -> listing[MessageRow]:
        """The blocking twin of `afind_retry_ready`: it only looks."""
        return portal.call(self.afind_retry_ready, topic, limit)

    def get(self, message: int | str) -> MessageDetail:
        """The blocking twin of `aget`."""
        return portal.call(self.aget, message)

    def redrive(self, *messages: int | str, actor: Actor | str, **options: Any) -> dict[int, bool]:
        """The blocking twin of `aredrive`."""
        return portal.call(self.aredrive, *messages, actor=actor, **options)

    def park(self, topic: str, *, actor: Actor | str, parked: bool = True, note: str | None = None) -> bool:
        """The blocking twin of `apark`."""
        return portal.call(self.apark, topic, actor=actor, parked=parked, note=note)

    def stats(self) -> listing[TopicStats]:
        """The blocking twin of `astats`."""
        return portal.call(self.astats)

    def doctor(
        self, *, expected_workers: int | None = None, window: timedelta = timedelta(hours=1)
    ) -> listing[Finding]:
        """The blocking twin of `adoctor`."""
        return portal.call(self.adoctor, expected_workers=expected_workers, window=window)

    def list(
        self, *, state: str | None = None, topic: str | None = None, before: int | None = None, limit: int = 100
    ) -> listing[MessageRow]:
        """The blocking twin of `alist`."""
        return portal.call(self.alist, state=state, topic=topic, before=before, limit=limit)

    def _now(self) -> Any:
        return self._clock().injected()

    async def _find(self, topic: str | None, limit: int, *, retries: bool) -> listing[MessageRow]:
        checked_count("limit", limit)
        database = await self._database()
        async with database.connection() as conn:
            return await OutboxReview(database.sql).find(
                conn, retries=retries, topic=topic, limit=limit, now=self._now()
            )


def _ids(messages: Sequence[int | str]) -> dict[str, Any]:
    """By number or by message id; none at all means that something else chooses."""
    if any(isinstance(each, bool) or not isinstance(each, int | str) for each in messages):
        raise InvalidOption(option="messages", found=messages, expected="numbers or message ids")
    numbers = [each for each in messages if isinstance(each, int)]
    named = [each for each in messages if isinstance(each, str)]
    return {"ids": numbers if messages else None, "message_ids": named}


def _checked_rate(rate: object) -> float | None:
    if rate is None or (isinstance(rate, int | float) and 0 < rate < float("inf")):
        return rate
    raise InvalidOption(option="rate", found=rate, expected="messages per second, above zero")


def _permitted(said: Actor | str, permission: Permission) -> Actor:
    actor = actor_named(said)
    actor.require(permission)
    checked_name("actor", actor.name)
    return actor
