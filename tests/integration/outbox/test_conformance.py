"""What every place for messages promises to the drain."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock.model.lifecycle import OutboxState
from interlock.model.message import Answer, Settlement, Settling
from tests.integration.outbox.places import LEASE, lanes, request

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


async def take(place, asked):
    """What was claimed, as (id, state)."""
    claims = await place.store.claim(asked)
    return [(each.id, str(each.state)) for each in claims.messages]


async def claim(place, asked=None):
    asked = asked or request()
    claims = await place.store.claim(asked)
    return [(each, asked.token) for each in claims.messages]


async def settle(place, held, outcome, **more) -> Answer:
    claimed, token = held
    [answer] = await place.store.settle([Settlement(claimed.id, token, outcome, **more)])
    return answer


async def ids(place, asked):
    return [number for number, _ in await take(place, asked)]


async def test_a_message_is_claimed_once_and_settled_by_its_claim(place):
    [published] = await place.publish("a", '{"x": 1}', key="k", partition="p", headers='{"h": "v"}')
    [held] = await claim(place)
    assert await ids(place, request()) == []
    claimed = held[0]
    assert (claimed.message_id, claimed.topic, claimed.key, claimed.partition) == (published.message_id, "a", "k", "p")
    assert (claimed.payload, claimed.headers, claimed.claims) == ('{"x": 1}', '{"h": "v"}', 1)
    assert await settle(place, held, Settling.DELIVERED, record_id="r1") is Answer.APPLIED
    row = await place.row(published.id)
    assert (row["state"], row["record_id"], row["attempts"]) == ("delivered", "r1", 0)
    assert await ids(place, request()) == []


async def test_publishing_an_id_twice_is_publishing_once(place):
    assert len(await place.publish(message_id="one")) == 1
    assert await place.publish(message_id="one") == []
    assert len(await ids(place, request())) == 1


async def test_each_refused_settlement_says_why(place):
    [published] = await place.publish()
    [held] = await claim(place)
    stranger = (held[0], uuid4())
    assert await settle(place, stranger, Settling.DELIVERED) is Answer.STALE
    assert await settle(place, stranger, Settling.DEAD, failure="no") is Answer.STALE
    assert (await place.row(published.id))["state"] == "pending"
    assert await settle(place, held, Settling.DELIVERED) is Answer.APPLIED
    assert await settle(place, held, Settling.DELIVERED) is Answer.TERMINAL
    assert await settle(place, (held[0]._replace(id=999), held[1]), Settling.RETRY, delay=SECOND) is Answer.MISSING


@pytest.mark.parametrize("outcome", Settling)
async def test_what_an_earlier_try_wrote_is_applied_and_neither_counted_nor_noted_again(place, outcome):
    """Its answer was lost, and workers that lose a connection are no sign of deliveries that outlive their claims."""
    [published] = await place.publish()
    [held] = await claim(place)
    known = {"delay": HOUR, "claims": held[0].claims, "attempts": held[0].attempts}
    assert [await settle(place, held, outcome, **known) for _ in range(2)] == [Answer.APPLIED] * 2
    assert (await place.row(published.id))["attempts"] == (outcome in (Settling.RETRY, Settling.DEAD))
    assert "stale" not in (await place.history() or [])


@pytest.mark.parametrize("outcome", Settling)
@pytest.mark.parametrize("ends", [Settling.DELIVERED, Settling.RETRY, None])
async def test_what_another_claim_made_of_a_message_is_not_taken_for_ones_own(place, outcome, ends):
    """The control of the one above: it looks as if this outcome had been written, and another claim wrote it."""
    await place.publish()
    [slow] = await claim(place)
    await place.lose_claims()
    [winner] = await claim(place)
    if ends is not None:
        await settle(place, winner, ends, delay=HOUR)
    known = {"delay": HOUR, "claims": slow[0].claims, "attempts": slow[0].attempts}
    assert await settle(place, slow, outcome, **known) in (Answer.STALE, Answer.TERMINAL)
    history = await place.history()
    assert history is None or "stale" in history


async def test_one_batch_answers_for_each_of_its_members_in_order(place):
    for _ in range(4):
        await place.publish()
    [one, two, three, four] = await claim(place)
    await settle(place, four, Settling.DELIVERED)
    answers = await place.store.settle(
        [
            Settlement(one[0].id, one[1], Settling.DELIVERED),
            Settlement(two[0].id, uuid4(), Settling.DELIVERED),
            Settlement(three[0].id, three[1], Settling.RETRY, delay=HOUR),
            Settlement(four[0].id, four[1], Settling.DELIVERED),
            Settlement(999, uuid4(), Settling.DELIVERED),
        ]
    )
    assert answers == [Answer.APPLIED, Answer.STALE, Answer.APPLIED, Answer.TERMINAL, Answer.MISSING]


@pytest.mark.parametrize("old_first", [True, False])
@pytest.mark.parametrize("outcome", [Settling.DELIVERED, Settling.RETRY])
async def test_an_old_and_a_new_claim_of_one_message_in_one_batch_are_told_apart(place, old_first, outcome):
    """Outcomes that waited for the database meet those of the next claim."""
    await place.publish()
    [(claimed, lost)] = await claim(place)
    await place.lose_claims()
    [(_, held)] = await claim(place)
    old = Settlement(claimed.id, lost, Settling.RETRY, delay=HOUR)
    new = Settlement(claimed.id, held, outcome, delay=HOUR)
    answers = await place.store.settle([old, new] if old_first else [new, old])
    by_claim = dict(zip((lost, held) if old_first else (held, lost), answers, strict=True))
    assert by_claim[held] is Answer.APPLIED
    assert by_claim[lost] in (Answer.STALE, Answer.TERMINAL)


async def test_a_retry_is_due_after_its_delay_and_counts_an_attempt(place):
    [published] = await place.publish()
    [held] = await claim(place)
    assert await settle(place, held, Settling.RETRY, failure="error", delay=HOUR) is Answer.APPLIED
    assert await ids(place, request()) == []
    assert timedelta(minutes=59) < await place.store.next_due(["^t$"]) <= HOUR
    await place.age(HOUR)
    [(claimed, _)] = await claim(place)
    assert (claimed.attempts, claimed.claims, claimed.failure) == (1, 2, "error")
    assert (await place.row(published.id))["crashes"] == 0


async def test_a_snooze_uses_no_attempt(place):
    [published] = await place.publish()
    [held] = await claim(place)
    await settle(place, held, Settling.SNOOZE, delay=HOUR)
    assert (await place.row(published.id))["attempts"] == 0


async def test_a_dead_message_is_not_claimed_again(place):
    [published] = await place.publish()
    [held] = await claim(place)
    await settle(place, held, Settling.DEAD, failure="rejected")
    await place.age(HOUR)
    assert await ids(place, request()) == []
    row = await place.row(published.id)
    assert (row["state"], row["failure"]) == ("dead", "rejected")


async def test_a_lost_claim_is_claimed_again_and_its_former_holder_settles_nothing(place):
    [published] = await place.publish()
    [slow] = await claim(place)
    await place.lose_claims()
    [winner] = await claim(place)
    assert winner[0].claims == 2
    assert winner[0].crashed
    assert await settle(place, slow, Settling.RETRY, delay=HOUR, failure="late") is Answer.STALE
    assert await settle(place, winner, Settling.DELIVERED, record_id="w") is Answer.APPLIED
    assert await settle(place, slow, Settling.DELIVERED, record_id="s") is Answer.TERMINAL
    row = await place.row(published.id)
    assert (row["state"], row["record_id"], row["crashes"]) == ("delivered", "w", 1)


async def test_released_messages_are_as_if_never_claimed(place):
    [published] = await place.publish()
    [held] = await claim(place)
    assert await place.store.release([(held[0].id, uuid4())], timedelta(0)) == set()
    assert await place.store.release([(held[0].id, held[1])], timedelta(0)) == {published.id}
    row = await place.row(published.id)
    assert (row["claims"], row["crashes"]) == (0, 0)
    [(again, _)] = await claim(place)
    assert (again.claims, again.crashed) == (1, False)


async def test_a_renewal_never_claims(place):
    [published] = await place.publish()
    [held] = await claim(place)
    assert await place.store.renew([(held[0].id, held[1])], LEASE) == {published.id}
    await place.lose_claims()
    [other] = await claim(place)
    assert await place.store.renew([(held[0].id, held[1])], LEASE) == set()
    await settle(place, other, Settling.DELIVERED)
    assert await place.store.renew([(other[0].id, other[1])], LEASE) == set()


async def test_a_message_that_takes_down_its_workers_is_isolated_and_then_dead(place):
    [published] = await place.publish()
    [innocent] = await place.publish("other")
    for crash in range(2):
        assert len(await claim(place, request("t"))) == 1, crash
        await place.lose_claims()
    assert await ids(place, request()) == [innocent.id]
    [(suspect, _)] = await claim(place, request("t", isolated=True, limit=1))
    assert suspect.crashes == 2
    await place.lose_claims()
    assert await take(place, request("t")) == [(published.id, "dead")]
    assert (await place.row(published.id))["failure"] == "crash_loop"


async def test_a_failure_that_is_settled_clears_the_count_of_crashes(place):
    [published] = await place.publish()
    await claim(place)
    await place.lose_claims()
    [held] = await claim(place)
    await settle(place, held, Settling.RETRY, failure="error", delay=timedelta(0))
    assert (await place.row(published.id))["crashes"] == 0


async def test_a_retry_past_the_receivers_memory_waits_for_review(place):
    [published] = await place.publish()
    [held] = await claim(place, request(window=HOUR))
    await settle(place, held, Settling.RETRY, failure="error", delay=timedelta(0))
    await place.age(2 * HOUR)
    assert await take(place, request(window=HOUR)) == [(published.id, "needs_review")]
    assert (await place.row(published.id))["failure"] == "window_passed"


async def test_a_message_past_its_expiry_is_not_delivered(place):
    [published] = await place.publish(expires=HOUR)
    await place.age(2 * HOUR)
    assert await take(place, request()) == [(published.id, "expired")]


@pytest.mark.parametrize("asked", [request, lanes])
async def test_a_claim_says_for_how_long_a_message_is_good(place, asked):
    for options in ({}, {"expires": 3 * HOUR}, {"expires": HOUR}):
        await place.publish(key="k", **options)
    first = await place.store.claim(asked(window=2 * HOUR))
    assert [_hours(each.good_for) for each in first.messages] == [None, 3, 1]
    await place.lose_claims()
    again = await place.store.claim(asked(window=2 * HOUR))
    assert [_hours(each.good_for) for each in again.messages] == [2, 2, 1]


def _hours(found: timedelta | None) -> int | None:
    return None if found is None else round(found / HOUR)


async def test_a_delayed_message_waits(place):
    [published] = await place.publish(delay=HOUR)
    assert await ids(place, request()) == []
    await place.age(HOUR)
    assert await ids(place, request()) == [published.id]


async def test_only_served_topics_and_partitions_are_claimed(place):
    for topic, partition in (("a.x", "eu"), ("a.y", "us"), ("a.y", None), ("b.x", "eu")):
        await place.publish(topic, partition=partition)
    assert await ids(place, request("a.*", partitions=["eu"])) == [1]
    assert await ids(place, request("a.*", topics=["^a\\.x$"])) == []
    assert await ids(place, request("a.*")) == [2, 3]
    assert await ids(place, request()) == [4]


async def test_a_topic_whose_emitter_has_no_room_is_left_to_others(place):
    await place.publish("a.x")
    full = request("a.x", "a.*")
    crowded = full._replace(roads=[full.roads[0]._replace(has_room=False), full.roads[1]])
    assert await ids(place, crowded) == []
    assert await ids(place, full) == [1]


async def test_a_long_backlog_of_one_topic_hides_no_other(place):
    for _ in range(150):
        await place.publish("busy")
    [quiet] = await place.publish("quiet")
    assert quiet.id in await ids(place, request(limit=100))


async def test_a_parked_topic_is_not_claimed(place):
    await place.publish("a")
    await place.publish("b")
    await place.park("a")
    assert await ids(place, request()) == [2]
    assert await ids(place, lanes()) == []


async def test_an_open_breaker_lets_one_probe_through_and_a_closed_one_all(place):
    for _ in range(3):
        await place.publish("a")
    assert MINUTE > HOUR - await place.store.open_breaker("a", HOUR, 4 * HOUR) >= timedelta(0)
    assert await place.store.open_breaker("a", HOUR, 4 * HOUR) is None
    assert await ids(place, request()) == []
    assert timedelta(0) < await place.store.next_due(["^a$"]) <= HOUR
    await place.probe_now()
    [(probe, _)] = await claim(place)
    assert probe.probe
    assert await ids(place, request()) == []
    assert MINUTE > 2 * HOUR - await place.store.open_breaker("a", HOUR, 4 * HOUR) >= timedelta(0)
    assert await place.store.close_breaker("a")
    assert not await place.store.close_breaker("a")
    assert await ids(place, request()) == [2, 3]


async def test_a_probe_is_one_message_in_lanes_too(place):
    for number in range(3):
        await place.publish("a", key=f"k{number}")
    await place.store.open_breaker("a", HOUR, HOUR)
    assert await ids(place, lanes()) == []
    await place.probe_now()
    assert [claimed.probe for claimed, _ in await claim(place, lanes())] == [True]
    assert await ids(place, lanes()) == []
    await place.store.close_breaker("a")
    assert len(await ids(place, lanes())) == 2


async def test_a_probe_is_left_to_those_who_have_a_message_for_it(place):
    """Else whoever comes first, for nothing, keeps the topic closed for another lease."""
    [published] = await place.publish("a", key="k", partition="us")
    await place.store.open_breaker("a", HOUR, HOUR)
    await place.probe_now()
    whole = lanes()
    full = whole._replace(roads=[whole.roads[0]._replace(has_room=False)])
    halves = [whole._replace(buckets=list(range(512))), whole._replace(buckets=list(range(512, 1024)))]
    for asked in (request(partitions=["eu"]), request(isolated=True), lanes(partitions=["eu"]), full):
        assert await ids(place, asked) == []
    assert await place.store.next_due(["^a$"]) is None
    assert sorted([await ids(place, half) for half in halves]) == [[], [published.id]]


@pytest.mark.parametrize("asked", [request(), lanes()], ids=["claim", "lanes"])
async def test_a_message_that_the_claim_ends_is_no_probe(place, asked):
    """Else each of them keeps the topic closed for another lease, long after its receiver is back."""
    old = [await place.publish("a", key=f"k{number}", expires=MINUTE) for number in range(3)]
    await place.age(HOUR)
    await place.publish("a", key="late")
    await place.store.open_breaker("a", HOUR, HOUR)
    await place.probe_now()
    claimed = [each for each, _ in await claim(place, asked)]
    assert [each.probe for each in claimed if each.state is OutboxState.PENDING] == [True]
    assert {(await place.row(each.id))["state"] for [each] in old} == {"expired"}
    assert await ids(place, asked) == []


async def test_a_key_without_room_is_passed_over_for_an_instant_and_no_longer(place):
    """It can go on as soon as one delivery ends; a key that holds is looked at again seconds later."""
    await place.publish("a", key="k")
    whole = lanes("a")
    full = whole._replace(roads=[whole.roads[0]._replace(has_room=False)])
    claims = await place.store.claim(full)
    assert (claims.messages, [each for each in claims.blocked.values() if each == timedelta(0)]) == ([], [])


async def test_a_key_that_reads_like_a_number_has_nothing_to_do_with_the_message_of_that_number(place):
    await place.publish(key="2")
    [other] = await place.publish()
    [held] = await claim(place, lanes(limit=1))
    await settle(place, held, Settling.RETRY, failure="error", delay=HOUR)
    assert (held[0].key, other.id) == ("2", 2)
    assert await ids(place, lanes()) == [other.id]


async def test_lanes_give_a_key_in_order_and_nothing_behind_what_waits(place):
    first = [(await place.publish(key="k"))[0].id for _ in range(3)]
    [other] = await place.publish(key="other")
    [free] = await place.publish()
    held = await claim(place, lanes(limit=2))
    assert [each.id for each, _ in held] == first[:2]
    assert await ids(place, lanes()) == [other.id, free.id]
    claims = await place.store.claim(lanes())
    assert set(claims.blocked) == {"k", "other"}
    await settle(place, held[0], Settling.DELIVERED)
    await settle(place, held[1], Settling.RETRY, failure="error", delay=HOUR)
    assert await ids(place, lanes()) == []
    await place.age(HOUR)
    assert await ids(place, lanes()) == [*first[1:], other.id, free.id]


async def test_lanes_pass_over_buckets_of_others_and_blocked_keys(place):
    [published] = await place.publish(key="k")
    assert await ids(place, lanes(blocked_keys=["k"])) == []
    whole = lanes()
    halves = [whole._replace(buckets=list(range(512))), whole._replace(buckets=list(range(512, 1024)))]
    assert sorted([await ids(place, half) for half in halves]) == [[], [published.id]]


@pytest.mark.parametrize(("holds", "goes_on"), [(True, False), (False, True)])
async def test_after_a_dead_message_its_key_holds_or_goes_on_as_declared(place, holds, goes_on):
    await place.publish(key="k")
    [second] = await place.publish(key="k")
    [held] = await claim(place, lanes(limit=1))
    await settle(place, held, Settling.DEAD, failure="no")
    assert await ids(place, lanes(holds=holds)) == ([second.id] if goes_on else [])


async def test_lanes_isolate_a_suspect_and_its_key_waits_for_it(place):
    first = [(await place.publish(key="k"))[0].id for _ in range(2)]
    for _ in range(2):
        assert len(await claim(place, lanes(limit=1))) == 1
        await place.lose_claims()
    assert await ids(place, lanes()) == []
    assert await ids(place, lanes(isolated=True)) == first[:1]


async def test_claims_at_the_same_time_share_the_messages(place):
    for _ in range(60):
        await place.publish()
    claims = await asyncio.gather(*(store.claim(request(limit=10)) for store in place.stores(6)))
    assert sorted(each.id for batch in claims for each in batch.messages) == list(range(1, 61))
