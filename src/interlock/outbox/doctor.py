"""The checks of an outbox: signs of too many workers, of double deliveries, and of a receiver in trouble."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.store.outbox_review import OutboxReview

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from interlock.model.message import Figures, TopicStats
    from interlock.store.database import Database

OLD = timedelta(minutes=5)
STALE_SHARE = 0.01
GROWTH, FEW = 2, 10
TAG = "outbox:"


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong, and what to do about it."""

    check: str
    found: str
    advice: str
    place: str = ""


async def examine(
    database: Database, *, window: timedelta, expected_workers: int | None, now: datetime | None
) -> list[Finding]:
    review = OutboxReview(database.sql)
    async with database.connection() as conn:
        workers = Counter(place for row in await review.workers(conn) for place in _partitions(row["tags"]))
        topics = await review.stats(conn, now=now)
        figures = await review.examine(conn, window=window, now=now)
    return [*check_workers(workers, expected_workers), *check_topics(topics), *check_figures(figures)]


def check_workers(workers: Counter[str], expected: int | None) -> Iterator[Finding]:
    """Live workers per partition, against the number that the operator expects."""
    if expected is None:
        return
    for partition in sorted(workers) or ["*"]:
        count = workers[partition]
        if count != expected:
            advice = (
                "disable the extra workers first, then look for double records at the receiver, and only then redrive"
                if count > expected
                else "start the missing workers: interlock run --roles outbox"
            )
            place = "all partitions" if partition == "*" else f"partition {partition}"
            found = f"{count} live workers serve {place}, expected {expected}"
            yield Finding("workers", found, advice, partition)


def check_topics(topics: Sequence[TopicStats]) -> Iterator[Finding]:
    for each in topics:
        if each.parked:
            found = f"{each.topic} is parked by {each.parked_by}"
            yield Finding("parked", found, f"interlock outbox unpark {each.topic}", each.topic)
        elif each.breaker != "closed":
            found = f"the breaker of {each.topic} is {each.breaker}"
            yield Finding("breaker", found, "look at its receiver", each.topic)
        elif each.oldest_ready is not None and each.oldest_ready > OLD:
            age = f"{each.oldest_ready.total_seconds():.0f} s"
            yield Finding(
                "oldest_ready",
                f"a message of {each.topic} has been ready for {age}",
                "start workers that have an emitter for the topic, or more of them",
                each.topic,
            )
        if each.dead or each.needs_review:
            found = f"{each.topic}: {each.dead} dead, {each.needs_review} need review"
            yield Finding("review", found, "interlock outbox list --state dead; then outbox redrive", each.topic)


def check_figures(figures: Figures) -> Iterator[Finding]:
    if figures.two_records:
        shown = ", ".join(figures.two_records[:5])
        advice = "the receiver does not honour the idempotency key: fix that, and remove its double records"
        yield Finding("two_records", f"the receiver made two records of {len(figures.two_records)}: {shown}", advice)
    if figures.stale > max(STALE_SHARE * figures.delivered, FEW):
        advice = "deliveries outlive their claims: raise outbox_lease, lower outbox_batch_size or the emit timeout"
        yield Finding("stale", f"{figures.stale} settlements were refused as stale", advice)
    if figures.throttled:
        advice = "lower the concurrency of the emitter, or ask the receiver for more"
        yield Finding("throttled", f"the receiver throttled {figures.throttled} deliveries", advice)
    if figures.without_record:
        topics = ", ".join(figures.without_record)
        advice = "the receiver names its record for some messages only: check what it did with the others"
        yield Finding("no_record", f"delivered without a record id, though others have one: {topics}", advice)
    for what, late, before in (
        ("retries", figures.retries, figures.retries_before),
        ("dead", figures.dead, figures.dead_before),
    ):
        if late > FEW and late > GROWTH * before:
            advice = "did the number of workers grow? disable the extra ones first, then inspect, then redrive"
            yield Finding(f"growing_{what}", f"{what} grew from {before} to {late}", advice)


def _partitions(tags: Sequence[str]) -> list[str]:
    return [tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)] or ["*"]
