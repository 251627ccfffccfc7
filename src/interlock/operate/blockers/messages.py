"""Blockers of messages: their own time and end, the road of their topic, what stands before them, and who delivers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.words import ahead, at
from interlock.outbox.reach import delivers, emits

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts
    from interlock.store.explaining import MessageFacts


def message_later(facts: Facts) -> Blocker | None:
    """A delay or a snooze; after a failure it is a backoff."""
    message = _waiting(facts)
    if message is None or message.claimed or message.available_at <= facts.now:
        return None
    due = ahead(message.available_at, facts.now)
    failed = message.attempts > 0
    return Blocker(
        code=Code.RETRY_BACKOFF if failed else Code.SCHEDULED_LATER,
        evidence=f"attempt {message.attempts} failed ({message.error_message or message.failure or 'no reason given'});"
        f" the next one is due {due}"
        if failed
        else f"it is not to be delivered before {due}",
        advice="wait; its attempts tell what failed" if failed else "wait",
        command=command("outbox", "show", message.id),
        details={"at": message.available_at, "attempts": message.attempts},
    )


def message_gave_up(facts: Facts) -> Blocker | None:
    message = facts.message
    if message is None or message.state not in {"dead", "needs_review"}:
        return None
    return Blocker(
        code=Code.MESSAGE_GAVE_UP,
        evidence=f"it is {message.state} ({message.failure or 'no reason given'}) after {message.attempts} attempts"
        f" and {message.crashes} crashes, and waits for a person",
        advice="see what its receiver has, then let it be delivered again",
        command=command("outbox", "redrive", message.id),
        details={"state": message.state, "failure": message.failure},
    )


def topic_parked(facts: Facts) -> Blocker | None:
    message = _waiting(facts)
    if message is None or not message.parked:
        return None
    return Blocker(
        code=Code.TOPIC_PARKED,
        evidence=f"the topic {message.topic} was parked by {message.parked_by or 'somebody'}",
        advice="let the topic be delivered again",
        command=command("outbox", "unpark", message.topic),
        details={"topic": message.topic},
    )


def breaker_open(facts: Facts) -> Blocker | None:
    message = _waiting(facts)
    if message is None or message.breaker == "closed":
        return None
    probe = "now" if message.probe_at is None else ahead(message.probe_at, facts.now)
    return Blocker(
        code=Code.BREAKER_OPEN,
        evidence=f"the receiver of {message.topic} failed too often; one message is tried {probe}",
        advice="bring the receiver back; the topic recovers by itself",
        command=command("outbox", "stats"),
        details={"topic": message.topic, "breaker": message.breaker, "probe_at": message.probe_at},
    )


def behind_its_key(facts: Facts) -> Blocker | None:
    """Only where messages of a key keep their order."""
    message = _waiting(facts)
    if message is None or not facts.in_order:
        return None
    waits, ended = message.waiting_before, message.ended_before if facts.dead_hold else None
    before = min((each for each in (waits, ended) if each is not None), default=None)
    if before is None:
        return None
    state = message.ended_state if before == ended else "pending"
    return Blocker(
        code=Code.BEHIND_ITS_KEY,
        evidence=f"message {before} of the key {message.key} comes first and is {state}",
        advice="redrive it, or let the emitter go on without it (on_dead='continue')"
        if before == ended
        else "wait for it, or see why it waits",
        command=command("outbox", "redrive", before) if before == ended else command("explain", f"message:{before}"),
        details={"message": str(before), "state": state},
    )


def no_drain(facts: Facts) -> Blocker | None:
    message = _waiting(facts)
    evidence = None if message is None else _why_nobody_delivers(message, facts)
    if evidence is None:
        return None
    return Blocker(
        code=Code.NO_DRAIN,
        evidence=evidence,
        advice="start a server whose app has an emitter for the topic and whose settings cover it",
        command=command("run"),
        details={"servers": facts.around.servers},
    )


def _why_nobody_delivers(message: MessageFacts, facts: Facts) -> str | None:
    drains = json.loads(message.drains)
    emitting = [tags for tags in drains if emits(tags, message.topic)]
    if not drains:
        return f"of {facts.around.servers} live servers none has the role outbox"
    if not emitting:
        lacking = f"has an emitter for the topic {message.topic} that its outbox_topics let it use"
        return f"none of the {len(drains)} live servers that deliver {lacking}"
    if any(delivers(tags, message.partition) for tags in emitting):
        return None
    which = "messages without a partition" if message.partition is None else f"the partition {message.partition}"
    return f"none of the {len(emitting)} live servers with an emitter for the topic {message.topic} delivers {which}"


def message_standing(message: MessageFacts, facts: Facts) -> str:
    what = f"message {message.id} ({message.topic})"
    if message.state != "pending":
        when = "" if message.ended_at is None else f" since {at(message.ended_at)}"
        return f"{what} is {message.state}{f': {message.failure}' if message.failure else ''}{when}"
    if message.claimed and message.available_at > facts.now:
        return f"{what} is being delivered by {message.claimed_by or 'a worker'}"
    return f"{what} waits since {at(message.published_at)}"


def _waiting(facts: Facts) -> MessageFacts | None:
    message = facts.message
    return message if message is not None and message.state == "pending" else None
