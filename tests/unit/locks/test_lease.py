"""What a holder can rely on, whatever happens to its lease."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
from datetime import timedelta
from uuid import uuid4

import pytest

from interlock.errors import InvalidOption, LeaseLost, LockServiceUnavailable, LockTaken, SyncCallInEventLoop
from interlock.locks.deadline import clock
from interlock.locks.health import HealthState
from interlock.locks.memory import MemoryLocks
from interlock.locks.partings import Parting, Partings
from interlock.model.lease import Refusal
from interlock.observe.events.lock import (
    SlotAcquired,
    SlotExpired,
    SlotForceReleased,
    SlotHeldLong,
    SlotLost,
    SlotRefused,
    SlotReleased,
    SlotRenewalFailed,
    SlotsDisagree,
)
from tests.harness.waiting import eventually, eventually_blocking

TTL = timedelta(seconds=1.5)  # shorter ones run out by themselves on a busy machine
HOUR = timedelta(hours=1)


def block(lease, duration):
    """Nothing else in this thread gets a turn meanwhile."""
    deadline = time.monotonic() + duration.total_seconds()
    while time.monotonic() < deadline:
        lease.ensure()
        time.sleep(0.001)


async def hold_until_lost(locks, then) -> None:
    async with locks.hold("x", ttl=TTL):
        await then()
        await asyncio.sleep(30)
        pytest.fail("the body went on")


async def renewals(service, count: int = 3) -> None:
    """Until the lease would have run out several times if nobody renewed it."""
    enough = service.extends + 3 * count
    await eventually(lambda: service.extends >= enough, 60, "renewals")


def seen(locks, kind):
    return [event for event in locks.events if isinstance(event, kind)]


async def test_a_hold_is_given_back_at_the_end_of_its_block(locks, service):
    async with locks.hold("x") as lease:
        assert (lease.name, lease.slot, lease.owner, lease.lost) == ("x", 0, "one", False)
        assert await locks.atry_hold("x") is None
    assert await service.holders() == []
    assert [type(event) for event in locks.events] == [SlotAcquired, SlotRefused, SlotReleased]


async def test_a_hold_is_given_back_when_its_body_raises(locks, service):
    with pytest.raises(KeyError):
        async with locks.hold("x"):
            raise KeyError
    assert await service.holders() == []


def test_the_blocking_form_holds_and_gives_back(service):
    from interlock.locks.locks import Locks
    from interlock.runtime.portal import portal

    async def open_backend():
        return service

    locks = Locks(open_backend, owner=lambda: "one", server_name="one", emit=lambda _: None)
    try:
        with locks.hold("x", ttl=TTL) as lease:
            block(lease, 2 * TTL)
            assert locks.try_hold("x") is None
            lease.extend()
        assert locks.holders() == []
        with locks.try_hold("x") as lease:
            assert not lease.lost
        assert locks.health().state is HealthState.HEALTHY
    finally:
        portal.call(locks.aclose)
        portal.close()


async def test_whoever_finds_every_slot_taken_is_told_at_once(locks):
    async with locks.hold("x"):
        with pytest.raises(LockTaken, match="'x' is taken"):
            async with locks.hold("x"):
                pass


async def test_whoever_waits_gets_the_slot_that_becomes_free(locks):
    lease = await locks.atry_hold("x")
    waiting = asyncio.create_task(locks.atry_hold("x", wait=60))
    await eventually(lambda: len(seen(locks, SlotRefused)) > 1, 60, "a second try")
    assert not waiting.done()
    await lease.arelease()
    async with await waiting as got:
        assert got.fence > lease.fence
    assert seen(locks, SlotAcquired)[-1].waited > timedelta(0)


async def test_whoever_waits_gives_up_in_time(locks):
    async with locks.hold("x"):
        began = time.monotonic()
        assert await locks.atry_hold("x", wait=0.1) is None
        assert 0.1 <= time.monotonic() - began < 20


async def test_a_lease_is_renewed_while_its_holder_blocks_the_event_loop(locks, service):
    async with locks.hold("x", ttl=TTL) as lease:
        block(lease, 2 * TTL)
        assert service.extends >= 3
    assert seen(locks, SlotLost) == []


async def test_control_without_the_keeper_a_blocked_event_loop_loses_the_lease(locks):
    locks._keeper.keep = lambda *_: None
    lease = await locks.atry_hold("x", ttl=TTL)
    with pytest.raises(LeaseLost):
        block(lease, 2 * TTL)


async def test_a_frozen_heartbeat_lets_ensure_raise_before_the_service_gives_the_slot_away(locks, service):
    locks._keeper.keep = lambda *_: None
    lease = await locks.atry_hold("x", ttl=TTL, on_lost="mark")
    while not lease.lost:
        assert len(await service.holders()) == 1
        await asyncio.sleep(0.001)
    with pytest.raises(LeaseLost) as raised:
        lease.ensure()
    assert (raised.value.name, raised.value.slot, raised.value.fence) == ("x", 0, lease.fence)
    assert lease.remaining() == timedelta(0)
    assert not await lease.arelease()


async def test_the_deadline_counts_from_before_the_request_was_sent(open_locks):
    class Slow(MemoryLocks):
        async def acquire(self, request):
            await asyncio.sleep(TTL.total_seconds() / 2)
            return await super().acquire(request)

    lease = await open_locks(Slow()).atry_hold("x", ttl=TTL)
    assert lease.remaining() <= TTL / 2
    await lease.arelease()


async def test_a_lost_lease_cancels_the_body_and_is_told_as_such(locks):
    with pytest.raises(LeaseLost):
        await hold_until_lost(locks, lambda: locks.aforce_release("x", actor="ada"))
    assert asyncio.current_task().cancelling() == 0
    [lost] = seen(locks, SlotLost)
    assert "does not know it" in lost.reason
    assert seen(locks, SlotForceReleased)[0].actor == "ada"


async def test_without_a_keeper_the_event_loop_itself_cancels_the_body_at_the_deadline(locks):
    locks._keeper.keep = lambda *_: None
    with pytest.raises(LeaseLost):
        async with locks.hold("x", ttl=TTL):
            await asyncio.sleep(30)


async def test_the_users_own_cancellation_stays_one(locks):
    entered = asyncio.Event()

    async def body():
        async with locks.hold("x"):
            entered.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(body())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_when_both_come_together_the_users_cancellation_wins(locks):
    entered = asyncio.Event()

    async def body():
        async with locks.hold("x", ttl=TTL) as lease:
            entered.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                lease.declare_lost()
                await asyncio.sleep(0)
                raise

    task = asyncio.create_task(body())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_around_the_hold_stays_a_timeout(locks):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), locks.hold("x"):
            await asyncio.sleep(30)


async def test_a_body_that_never_noticed_is_told_at_its_end(locks):
    with pytest.raises(LeaseLost):
        async with locks.hold("x", ttl=TTL) as lease:
            lease.declare_lost()


async def test_a_lease_that_only_marks_its_loss_leaves_the_body_alone(locks):
    async with locks.hold("x", ttl=TTL, on_lost="mark") as lease:
        await locks.aforce_release("x", actor="ada")
        await eventually(lambda: lease.lost, 60, "the loss")
    assert not lease.ended or lease.lost


async def test_an_outage_shorter_than_the_lease_loses_nothing(locks, service):
    async with locks.hold("x", ttl=2 * TTL) as lease:
        service.down = True
        await eventually(lambda: seen(locks, SlotRenewalFailed), 60, "a failed renewal")
        service.down = False
        count = service.extends
        await eventually(lambda: service.extends > count, 60, "a renewal")
        lease.ensure()
    assert seen(locks, SlotLost) == []


async def test_an_outage_longer_than_the_lease_loses_it_after_many_tries(locks, service):
    async def go_down():
        service.down = True

    with pytest.raises(LeaseLost):
        await hold_until_lost(locks, go_down)
    service.down = False
    assert len(seen(locks, SlotRenewalFailed)) > 2
    assert "not renewed in time" in seen(locks, SlotLost)[0].reason


async def test_a_slot_that_could_not_be_given_back_is_given_back_later(locks, service):
    lease = await locks.atry_hold("x")
    service.down = True
    assert not await lease.arelease()
    service.down = False

    async def free():
        return not await service.holders()

    await eventually(free, 15, "the slot to be free long before its lease ends")


async def test_leases_too_short_for_a_new_connection_cost_no_other_its_renewal(open_locks):
    class Far(MemoryLocks):
        async def line(self):
            await asyncio.sleep(0.1)
            return await super().line()

    locks = open_locks(Far())
    long = await locks.atry_hold("long", ttl=timedelta(seconds=3), on_lost="mark")
    asked = long.answered
    for number in itertools.count():
        if long.answered > asked:
            break
        long.ensure()
        await locks.atry_hold(f"short-{number}", ttl=timedelta(milliseconds=200), on_lost="mark")
        await asyncio.sleep(0.1)


async def test_giving_back_much_after_an_outage_lets_no_renewal_wait(open_locks, service, monkeypatch):
    release = service.release

    async def slow(*slot):
        freed = await release(*slot)
        await asyncio.sleep(0.2)
        return freed

    monkeypatch.setattr(service, "release", slow)
    locks = open_locks(service)
    leases = [await locks.atry_hold(f"{number}") for number in range(12)]
    kept = await locks.atry_hold("kept", ttl=timedelta(seconds=1.5), on_lost="mark")
    service.down = True
    assert not any([await lease.arelease() for lease in leases])
    service.down = False

    async def given_back():
        return len(await service.holders()) <= 1

    await eventually(given_back, 60, "the slots to be given back")
    kept.ensure()


async def test_a_slot_that_was_granted_to_a_caller_who_had_gone_does_not_stay_taken(open_locks):
    class LostAnswer(MemoryLocks):
        async def acquire(self, request):
            await super().acquire(request)
            await asyncio.sleep(30)

    service = LostAnswer()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await open_locks(service).atry_hold("x")

    async def free():
        return not await service.holders()

    await eventually(free, 15, "the slot to be free long before its lease ends")


async def test_a_service_that_does_not_answer_is_an_error_and_not_a_refusal(locks, service):
    service.down = True
    with pytest.raises(LockServiceUnavailable):
        await locks.atry_hold("x")
    assert (await locks.ahealth()).state is HealthState.UNHEALTHY


async def test_a_service_that_hangs_counts_as_one_that_does_not_answer(open_locks):
    class Hanging(MemoryLocks):
        async def acquire(self, _):
            await asyncio.sleep(30)

    with pytest.raises(LockServiceUnavailable, match=r"no answer within 1\.5 s"):
        await open_locks(Hanging()).atry_hold("x", ttl=TTL)


async def test_extending_by_hand_moves_the_deadline_and_changes_the_ttl(locks, service):
    async with locks.hold("x", ttl=TTL) as lease:
        await lease.aextend(timedelta(minutes=20))
        assert lease.remaining() > timedelta(minutes=19)
        assert lease.ttl == timedelta(minutes=20)


async def test_extending_by_hand_what_is_lost_raises(locks):
    lease = await locks.atry_hold("x", on_lost="mark")
    await locks.aforce_release("x", actor="ada")
    with pytest.raises(LeaseLost):
        await lease.aextend()
    assert lease.lost


async def test_a_released_lease_is_no_permission_any_more(locks):
    lease = await locks.atry_hold("x")
    assert await lease.arelease()
    assert not await lease.arelease()
    with pytest.raises(LeaseLost):
        lease.ensure()


async def test_a_slot_stays_taken_for_at_least_as_long_as_asked(locks):
    async with locks.hold("x", at_least=2):
        pass
    assert await locks.atry_hold("x") is None
    async with locks.hold("x", wait=60):
        pass
    assert seen(locks, SlotExpired) == []


async def test_a_lease_held_longer_than_expected_is_told_once(locks, service):
    async with locks.hold("x", ttl=TTL, warn_after=timedelta(seconds=0.05)) as lease:
        await eventually(lambda: seen(locks, SlotHeldLong), 60, "the warning")
        await lease.aextend()
        await renewals(service)
    assert len(seen(locks, SlotHeldLong)) == 1


async def test_holders_that_disagree_are_both_named_and_once(open_locks, service):
    ours, theirs = open_locks(service, "ours"), open_locks(service, "theirs")
    async with theirs.hold("x", slots=2):
        for _ in range(3):
            async with ours.hold("x", slots=5):
                pass
    [told] = seen(ours, SlotsDisagree)
    assert (told.owner, told.slots, told.other, told.theirs) == ("ours", 5, "theirs", 2)
    assert "ours counts 5 slots of x, theirs counts 2; the smaller number binds" in told.message()


async def test_a_holder_that_vanished_is_named_by_its_successor(open_locks, service):
    dead, heir = open_locks(service, "dead"), open_locks(service, "heir")
    (await dead.atry_hold("x", ttl=TTL)).abandon()
    async with heir.hold("x", wait=60):
        pass
    assert seen(heir, SlotExpired)[0].owner == "dead"


async def test_a_lease_that_came_through_a_fork_is_lost_in_the_child_and_kept_in_the_parent(locks, service):
    async with locks.hold("x", ttl=TTL) as lease:
        child = os.fork()
        if child == 0:
            os._exit(0 if lease.lost and not lease.remaining() else 1)
        assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
        await renewals(service)
        lease.ensure()


async def test_the_start_of_the_search_is_drawn_anew_each_time(locks):
    leases = [await locks.atry_hold("x", slots=200) for _ in range(20)]
    assert len({lease.slot for lease in leases}) == 20
    assert sorted(lease.slot for lease in leases) != list(range(20))


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 0}, {"slots": True}, {"slots": 10_001}, {"ttl": timedelta(milliseconds=1)}, {"ttl": 5},
        {"ttl": timedelta(0)}, {"ttl": timedelta(days=8)}, {"wait": "1"}, {"wait": None}, {"wait": float("nan")},
        {"wait": float("inf")}, {"at_least": True}, {"warn_after": 5}, {"warn_after": timedelta(0)},
        {"wait": -1}, {"at_least": -1}, {"on_lost": "explode"}, {"name": ""}, {"name": " x"},
    ],
)  # fmt: skip
async def test_a_wrong_option_is_refused_before_anything_is_sent(locks, wrong):
    with pytest.raises(InvalidOption):
        locks.hold(**{"name": "x", **wrong})


@pytest.mark.parametrize("wrong", [{"name": ""}, {"slot": "0"}, {"slot": -1}, {"actor": ""}])
async def test_what_cannot_be_a_slot_is_not_taken_away(locks, wrong):
    with pytest.raises(InvalidOption):
        await locks.aforce_release(**{"name": "x", "slot": 0, "actor": "ada", **wrong})


async def test_a_hold_in_use_cannot_be_entered_twice(locks):
    hold = locks.hold("x", slots=2)
    async with hold:
        with pytest.raises(InvalidOption):
            await hold.__aenter__()
    async with hold as lease:
        assert not lease.lost


async def test_a_refusal_does_not_start_a_keeper(open_locks):
    class Full(MemoryLocks):
        async def acquire(self, request):
            return Refusal(peers=(await super().acquire(request)).peers)

    locks = open_locks(Full())
    assert await locks.atry_hold("x") is None
    assert locks._keeper._thread is None


async def test_of_two_who_enter_one_hold_at_once_one_is_refused_and_no_slot_is_left_behind(locks, service):
    hold = locks.hold("x", slots=2)

    async def use() -> None:
        async with hold:
            await asyncio.sleep(0.05)

    outcomes = await asyncio.gather(use(), use(), return_exceptions=True)
    assert sorted(type(outcome) for outcome in outcomes if outcome) == [InvalidOption]
    assert await service.holders() == []


async def test_a_hold_that_could_not_be_entered_may_be_entered_later(locks):
    hold = locks.hold("x")
    async with locks.hold("x"):
        with pytest.raises(LockTaken):
            await hold.__aenter__()
    async with hold as lease:
        lease.ensure()


async def test_a_lease_that_was_given_back_protects_no_second_body(locks):
    lease = await locks.atry_hold("x")
    async with lease:
        pass
    with pytest.raises(LeaseLost):
        async with lease:
            pytest.fail("nothing is held")


@pytest.mark.parametrize("wrong", [timedelta(0), timedelta(seconds=-1), timedelta(days=8), 5])
async def test_a_lease_is_not_extended_by_what_is_no_ttl(locks, wrong):
    async with locks.hold("x") as lease:
        with pytest.raises(InvalidOption, match="ttl"):
            await lease.aextend(wrong)
        lease.ensure()


async def test_an_extended_lease_is_still_told_when_it_is_held_longer_than_expected(locks):
    async with locks.hold("x", ttl=TTL, warn_after=timedelta(seconds=0.2)) as lease:
        await lease.aextend(timedelta(minutes=1))
        await eventually(lambda: seen(locks, SlotHeldLong), 60, "the warning")


async def test_a_slow_grant_is_renewed_before_it_runs_out(open_locks):
    class Slow(MemoryLocks):
        async def acquire(self, request):
            answer = await super().acquire(request)
            await asyncio.sleep(TTL.total_seconds() * 0.8)
            return answer

    async with open_locks(Slow()).hold("x", ttl=TTL) as lease:
        await eventually(lambda: lease.remaining() > TTL * 0.5, 60, "a renewal")


class TwoAtOnce(MemoryLocks):
    """Answers the keeper late, and carries its question out after those that were asked meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answered, self.go = threading.Event(), threading.Event(), threading.Event()

    async def line(self):
        return KeepersLine(self)


class KeepersLine:
    def __init__(self, service: TwoAtOnce) -> None:
        self._service = service

    async def extend(self, held):
        self._service.asked.set()
        await asyncio.to_thread(self._service.go.wait)
        answers = await self._service.extend(held)
        self._service.answered.set()
        return answers

    def server_of(self, name):
        return self._service.server_of(name)

    async def close(self) -> None:
        """Nothing is open."""


async def a_renewal_overtaken_by_a_longer_extension(locks, service):
    lease = await locks.atry_hold("x", ttl=timedelta(seconds=6))
    assert await asyncio.to_thread(service.asked.wait, 60)
    await lease.aextend(HOUR)
    service.go.set()
    assert await asyncio.to_thread(service.answered.wait, 60)
    [holder] = await service.holders()
    return lease, holder


async def test_a_renewal_that_was_overtaken_does_not_shorten_a_longer_lease(open_locks):
    service = TwoAtOnce()
    lease, holder = await a_renewal_overtaken_by_a_longer_extension(open_locks(service), service)
    assert lease.remaining() <= holder.expires_in
    await lease.arelease()


@pytest.mark.parametrize("keeper_is_answered_first", [True, False])
async def test_a_renewal_that_is_asked_for_meanwhile_takes_back_no_extension(open_locks, keeper_is_answered_first):
    class AnswersHoldersLate(TwoAtOnce):
        async def extend(self, held):
            answers = await super().extend(held)
            if held[0].ttl == HOUR:
                assert await asyncio.to_thread(self.asked.wait, 60)
                if keeper_is_answered_first:
                    await self.answer_keeper()
            return answers

        async def answer_keeper(self):
            self.go.set()
            assert await asyncio.to_thread(self.answered.wait, 60)
            await asyncio.sleep(0.05)

    service = AnswersHoldersLate()
    lease = await open_locks(service).atry_hold("x", ttl=timedelta(seconds=3))
    await lease.aextend(HOUR)
    await service.answer_keeper()
    assert (lease.ttl, lease.remaining() > HOUR / 2) == (HOUR, True)
    await lease.arelease()


async def test_control_a_service_that_shortens_leaves_a_holder_who_believes_too_much(open_locks):
    class Shortens(TwoAtOnce):
        async def extend(self, held):
            for each in held:
                self._names[each.name][each.slot].until = self._clock() + 0.001
            return await super().extend(held)

    service = Shortens()
    lease, holder = await a_renewal_overtaken_by_a_longer_extension(open_locks(service), service)
    assert lease.remaining() > holder.expires_in
    await lease.arelease()


async def test_a_renewal_does_not_wait_for_a_release_that_hangs(open_locks):
    class Hangs(MemoryLocks):
        async def release(self, name, token, at_least):
            if name == "stuck":
                await asyncio.sleep(3600)
            return await super().release(name, token, at_least)

    locks = open_locks(Hangs())
    async with locks.hold("x", ttl=TTL) as lease:
        for _ in range(20):
            locks._keeper.release_later("stuck", uuid4(), timedelta(0), timedelta(hours=1))
        await asyncio.sleep(2 * TTL.total_seconds())
        lease.ensure()
    assert seen(locks, SlotLost) == []


async def test_a_short_lease_does_not_wait_for_the_renewal_of_a_long_one_that_hangs(open_locks):
    class Hangs(MemoryLocks):
        async def extend(self, held):
            if any(each.name == "long" for each in held):
                await asyncio.sleep(3600)
            return await super().extend(held)

    locks = open_locks(Hangs())
    async with locks.hold("long", ttl=timedelta(hours=1)), locks.hold("x", ttl=TTL) as lease:
        locks._keeper._kept[next(iter(locks._keeper._kept))].due = 0.0
        locks._keeper._loop.wake()
        await asyncio.sleep(2 * TTL.total_seconds())
        lease.ensure()


async def test_a_question_that_is_carried_out_after_its_caller_gave_up_does_not_keep_the_slot(open_locks):
    class Late(MemoryLocks):
        def __init__(self) -> None:
            super().__init__()
            self.late = []

        async def acquire(self, request):
            self.late.append(request)
            await asyncio.sleep(3600)

    service = Late()
    locks = open_locks(service)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await locks.atry_hold("x", ttl=timedelta(minutes=1))
    await asyncio.sleep(0.3)  # the first tries to give it back find nothing
    await MemoryLocks.acquire(service, service.late[0])

    async def free():
        return not await service.holders()

    await eventually(free, 15, "the slot to be free long before its lease ends")


async def test_what_could_not_be_given_back_is_given_back_when_the_locks_are_closed(locks, service):
    lease = await locks.atry_hold("x", ttl=timedelta(minutes=1))
    service.down = True
    assert not await lease.arelease()
    await eventually(lambda: service.releases >= 2, 60, "a try that fails")
    service.down = False
    await locks.aclose()
    assert await service.holders() == []


@pytest.mark.parametrize("take", [lambda locks: locks.hold("x").__enter__(), lambda locks: locks.try_hold("x")])
def test_a_slot_whose_taker_is_interrupted_as_it_gets_it_is_given_back(service, monkeypatch, take):
    """A signal may raise after the answer has come: the slot would be renewed for as long as the process lives."""
    from interlock.locks.locks import Locks
    from interlock.runtime.portal import portal

    locks, call = (
        Locks(lambda: opened(service), owner=lambda: "one", server_name="one", emit=lambda _: None),
        portal.call,
    )

    def interrupted(*called):
        call(*called)
        raise KeyboardInterrupt

    monkeypatch.setattr(portal, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        take(locks)
    monkeypatch.setattr(portal, "call", call)
    eventually_blocking(lambda: not locks.holders(), 60, "the slot to be given back")
    portal.call(locks.aclose)


async def opened(service):
    return service


async def test_what_was_never_tried_is_given_back_before_what_is_tried_again():
    partings, tried = Partings(), []

    def parting(name: str, due: float) -> Parting:
        return Parting(name, uuid4(), timedelta(0), clock() + 3600, held=True, due=due)

    async def release(each: Parting) -> bool:
        tried.append(each.name)
        if each.name == "again":
            partings.add(parting("new", 0))
        return True

    partings.add(parting("again", clock() - 2))
    partings.add(parting("and again", clock() - 1))
    await partings.work_off(release, before=lambda: float("inf"))
    assert tried == ["again", "new", "and again"]


async def test_whoever_closes_does_not_wait_until_all_is_given_back(open_locks):
    class Slow(MemoryLocks):
        async def release(self, name, token, at_least):
            await asyncio.sleep(0.2)
            return await super().release(name, token, at_least)

    locks = open_locks(Slow())
    for _ in range(300):
        locks._keeper.release_later("x", uuid4(), timedelta(0), timedelta(hours=1), held=False)
    thread = locks._keeper._thread
    await locks.aclose()
    await eventually(lambda: not thread.is_alive(), 20, "the end of the keeper")


def test_a_child_is_not_stopped_by_what_its_parent_was_in_the_middle_of(service):
    from interlock.locks.locks import Locks
    from interlock.runtime.portal import portal

    async def open_backend():
        return service

    locks = Locks(open_backend, owner=lambda: "one", server_name="one", emit=lambda _: None)
    with locks._keeper._guard:  # as when another thread of the parent takes a lease just then
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            lease = locks.try_hold("x")
            os._exit(0 if lease is not None and lease.release() else 1)
    assert os.waitpid(child, 0)[1] == 0
    portal.call(locks.aclose)
    portal.close()


def test_what_a_forked_child_holds_is_held_in_its_own_name():
    from interlock import Interlock
    from interlock.runtime.portal import portal

    app = Interlock(lock_backend="memory", server_name="here")
    with app.locks.hold("x") as lease:
        assert lease.owner == f"here:{os.getpid()}"
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        lease = app.locks.try_hold("x")
        os._exit(0 if lease is not None and lease.owner == f"here:{os.getpid()}" else 1)
    assert os.waitpid(child, 0)[1] == 0
    portal.call(app.locks.aclose)
    portal.close()


async def test_those_who_come_first_and_at_once_open_one_service():
    from interlock.locks.locks import Locks

    async def open_backend():
        await asyncio.sleep(0.01)
        return MemoryLocks()

    locks = Locks(open_backend, owner=lambda: "one", server_name="one", emit=lambda _: None)
    first, second = await asyncio.gather(locks.atry_hold("x"), locks.atry_hold("x"))
    assert (first is None) != (second is None)
    assert await locks.abackend() is await locks.abackend()
    await (first or second).arelease()
    await locks.aclose()


@pytest.mark.parametrize(
    ("call", "twin"),
    [
        (lambda locks: locks.hold("x").__enter__(), r"async twin: async with$"),
        (lambda locks: locks.try_hold("x"), r"await atry_hold\(…\)"),
        (lambda locks: locks.holders(), r"await aholders\(…\)"),
    ],
)
async def test_a_blocking_form_inside_an_event_loop_names_the_one_to_use(locks, call, twin):
    with pytest.raises(SyncCallInEventLoop, match=twin):
        call(locks)


async def test_a_lease_is_not_entered_where_it_could_not_be_given_back(locks, service):
    lease = await locks.atry_hold("x")
    with pytest.raises(SyncCallInEventLoop, match="async with"):
        lease.__enter__()
    async with lease:
        pass
    assert await service.holders() == []
