"""One suite for every lock service: what a holder may rely on, whoever keeps the slots."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from interlock.model.lease import Grant, Held, Refusal
from tests.harness.waiting import eventually
from tests.integration.locks.conftest import request

NOTHING = timedelta(0)
SHORT = 1.5  # what is asked of a lease meanwhile must come before its end


def held(asked, grant: Grant, ttl: float = 30.0) -> Held:
    return Held(asked.name, grant.slot, asked.token, timedelta(seconds=ttl))


async def granted_soon(backend, **wish) -> Grant:
    async def granted():
        answer = await backend.acquire(request(**wish))
        return answer if isinstance(answer, Grant) else None

    return await eventually(granted, 60, "a grant")


async def test_n_slots_have_n_holders_and_no_more(backend):
    answers = [await backend.acquire(request(slots=3)) for _ in range(5)]
    assert sorted(answer.slot for answer in answers if isinstance(answer, Grant)) == [0, 1, 2]
    assert [type(answer) for answer in answers[3:]] == [Refusal, Refusal]
    assert answers[4].peers.holders == 3
    assert NOTHING < answers[4].free_in <= timedelta(seconds=30)


async def test_many_at_once_get_each_slot_once(backend):
    wishes = (request(slots=5, start=number % 5) for number in range(20))
    answers = await asyncio.gather(*(backend.acquire(wish) for wish in wishes))
    granted = [answer for answer in answers if isinstance(answer, Grant)]
    assert len({grant.slot for grant in granted}) == len(granted)
    # Those who came at the same instant may have skipped a slot that another was about to leave; now none is left.
    while isinstance(late := await backend.acquire(request(slots=5)), Grant):
        granted.append(late)
    assert sorted(grant.slot for grant in granted) == [0, 1, 2, 3, 4]


async def test_the_search_begins_at_the_slot_that_was_asked_for_and_goes_round(backend):
    slots = [(await backend.acquire(request(slots=3, start=2))).slot for _ in range(3)]
    assert slots == [2, 0, 1]


async def test_a_name_is_no_other_name_and_a_namespace_no_other_namespace(open_backend):
    here, there = open_backend("staging"), open_backend("prod")
    for name in ("a", "{a}", "a}", "}a", "a%7B", "timer:a:slot:0", "ä b"):
        assert isinstance(await here.acquire(request(name)), Grant)
        assert isinstance(await here.acquire(request(name)), Refusal)
    assert isinstance(await there.acquire(request("a")), Grant)
    assert {holder.name for holder in await here.holders()} == {
        "a", "{a}", "a}", "}a", "a%7B", "timer:a:slot:0", "ä b",
    }  # fmt: skip
    assert [holder.name for holder in await there.holders()] == ["a"]


async def test_fences_of_a_slot_only_grow(backend):
    fences = []
    for _ in range(20):
        asked = request()
        fences.append((await backend.acquire(asked)).fence)
        await backend.release(asked.name, asked.token, NOTHING)
    assert fences == sorted(set(fences))


async def test_a_slot_is_free_once_its_lease_ran_out_and_names_who_never_released_it(backend):
    await backend.acquire(request(ttl=SHORT, owner="dead"))
    assert isinstance(await backend.acquire(request()), Refusal)
    assert (await granted_soon(backend)).expired == "dead"


async def test_a_released_slot_is_free_at_once_and_nobody_is_blamed(backend):
    asked = request()
    await backend.acquire(asked)
    assert await backend.release(asked.name, asked.token, NOTHING)
    assert (await backend.acquire(request())).expired is None


async def test_extending_moves_the_end(backend):
    asked = request(ttl=SHORT)
    grant = await backend.acquire(asked)
    remaining = (await backend.extend([held(asked, grant, 1200)]))[asked.token]
    assert timedelta(minutes=19) < remaining <= timedelta(minutes=20)
    [holder] = await backend.holders()
    assert holder.expires_in > timedelta(minutes=19)
    assert holder.ttl == timedelta(minutes=20)


async def test_extending_never_shortens_what_was_promised_before(backend):
    asked = request()
    grant = await backend.acquire(asked)
    await backend.extend([held(asked, grant, 1200)])
    remaining = (await backend.extend([held(asked, grant, 30)]))[asked.token]
    assert remaining <= timedelta(seconds=30)
    [holder] = await backend.holders()
    assert holder.expires_in > timedelta(minutes=19)
    assert holder.ttl == timedelta(seconds=30)


async def test_extending_never_takes_a_slot_back_even_if_nobody_else_took_it(backend):
    asked = request(ttl=SHORT)
    grant = await backend.acquire(asked)

    async def gone():
        return not await backend.holders()

    await eventually(gone, 60, "the end of the lease")
    assert await backend.extend([held(asked, grant)]) == {}
    assert await backend.holders() == []


async def test_only_the_token_extends_and_releases(backend):
    asked = request()
    grant = await backend.acquire(asked)
    stranger = Held(asked.name, grant.slot, uuid4(), timedelta(seconds=30))
    assert await backend.extend([stranger]) == {}
    assert not await backend.release(asked.name, stranger.token, NOTHING)
    assert isinstance(await backend.acquire(request()), Refusal)


async def test_one_lost_lease_does_not_hinder_the_others_of_a_batch(backend):
    kept, lost = request("kept"), request("lost")
    grants = [await backend.acquire(kept), await backend.acquire(lost)]
    await backend.release("lost", lost.token, NOTHING)
    assert set(await backend.extend([held(kept, grants[0]), held(lost, grants[1])])) == {kept.token}


async def test_a_released_lease_is_not_released_twice(backend):
    asked = request()
    await backend.acquire(asked)
    assert await backend.release(asked.name, asked.token, NOTHING)
    assert not await backend.release(asked.name, asked.token, NOTHING)


async def test_a_slot_that_must_be_held_at_least_so_long_stays_taken_after_its_release(backend):
    asked = request()
    grant = await backend.acquire(asked)
    assert await backend.release(asked.name, asked.token, timedelta(seconds=2))
    assert isinstance(await backend.acquire(request()), Refusal)
    assert await backend.extend([held(asked, grant)]) == {}
    assert (await granted_soon(backend)).expired is None


async def test_while_holders_disagree_the_smaller_number_binds(backend):
    assert isinstance(await backend.acquire(request(slots=2, owner="small")), Grant)
    answer = await backend.acquire(request(slots=5, start=4, owner="large"))
    assert (answer.slot, answer.peers.disagreeing(5)) == (1, (2, "small"))
    refused = await backend.acquire(request(slots=5))
    assert isinstance(refused, Refusal)
    assert (refused.peers.narrowest, refused.peers.narrowest_by, refused.peers.widest) == (2, "small", 5)


async def test_a_lowered_number_drains_and_takes_nothing_from_those_who_hold(backend):
    wide = [request(slots=4, start=number, owner="wide") for number in range(4)]
    grants = [await backend.acquire(asked) for asked in wide]
    for free in (0, 3):
        refused = await backend.acquire(request(slots=2, owner="narrow"))
        assert refused.peers.disagreeing(2) == (4, "wide")
        await backend.release("x", wide[free].token, NOTHING)
    assert isinstance(await backend.acquire(request(slots=2)), Refusal)
    assert len(await backend.extend([held(wide[n], grants[n]) for n in (1, 2)])) == 2
    await backend.release("x", wide[2].token, NOTHING)
    assert (await backend.acquire(request(slots=2))).slot == 0


async def test_holders_are_listed_with_what_an_operator_needs(backend):
    before = datetime.now(UTC)
    asked = request("b", slots=2, start=1, ttl=1200)
    grant = await backend.acquire(asked)
    await backend.acquire(request("a"))
    first, second = await backend.holders()
    assert (first.name, second.name, second.slot) == ("a", "b", 1)
    assert (second.owner, second.server, second.slots) == ("one", asked.server, 2)
    assert second.fence == grant.fence
    assert second.acquired_at == grant.acquired_at
    assert abs(second.acquired_at - before) < timedelta(minutes=1)
    assert NOTHING <= second.age < timedelta(minutes=1)
    assert timedelta(minutes=19) < second.expires_in <= second.ttl == timedelta(minutes=20)
    assert [holder.name for holder in await backend.holders("b")] == ["b"]


async def test_a_slot_taken_away_by_force_is_free_and_its_holder_cannot_extend(backend):
    asked = request()
    grant = await backend.acquire(asked)
    freed = await backend.force_release("x", 0)
    assert (freed.owner, freed.fence) == ("one", grant.fence)
    assert await backend.extend([held(asked, grant)]) == {}
    assert await backend.force_release("x", 0) is None
    again = await backend.acquire(request())
    assert again.fence > grant.fence
    assert again.expired is None


async def test_a_line_of_its_own_extends_and_releases(backend):
    asked = request()
    grant = await backend.acquire(asked)
    line = await backend.line()
    try:
        assert set(await line.extend([held(asked, grant)])) == {asked.token}
        assert await line.release("x", asked.token, NOTHING)
    finally:
        await line.close()
    assert await backend.holders() == []


async def test_however_many_hold_all_are_listed(backend):
    grants = [await backend.acquire(request(slots=1100, ttl=300.0, start=number)) for number in range(1100)]
    assert {grant.slot for grant in grants} == set(range(1100))
    assert len(await backend.holders("x")) == 1100
