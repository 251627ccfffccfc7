"""The drain over messages in memory: batches, breakers, chains and leases without a database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from datetime import timedelta
from itertools import islice

import pytest

from interlock.locks.deadline import clock
from interlock.model.message import Dead, Delivered, NewMessage
from interlock.model.outcome import Retry
from interlock.observe.events import MessagesReleased
from interlock.outbox.breaker import Breakers
from interlock.outbox.component import DrainComponent
from interlock.outbox.drain import Drain
from interlock.outbox.emitter import EmitterOptions, Emitters
from interlock.outbox.memory import MemoryMessages
from interlock.outbox.settings import OutboxSettings
from interlock.trains.options import Backoff
from tests.harness.waiting import eventually

NEVER = Backoff(delay=timedelta(hours=1), max_delay=timedelta(hours=1))


class World:
    def __init__(self, **settings) -> None:
        self.store, self.emitters, self.events = MemoryMessages(), Emitters(), []
        self.settings = OutboxSettings(**settings)

    def emitter(self, pattern: str = "*", **options):
        return lambda function: self.emitters.declare(
            pattern, function, EmitterOptions(**{"backoff": NEVER, **options})
        )

    def publish(self, count: int = 1, topic: str = "t", **options) -> None:
        self.store.publish([NewMessage(topic, str(n), **options) for n in range(count)])

    def drain(self) -> Drain:
        breakers = Breakers(self.store, emit=self.events.append, failures=3)
        emitters = self.emitters.resolved(self.settings)
        return Drain(self.store, emitters, self.settings, emit=self.events.append, breakers=breakers)

    def states(self) -> list[str]:
        return [str(row.state) for row in self.store.rows.values()]


async def test_the_most_specific_emitter_delivers_and_plain_functions_do_too():
    world, calls = World(), []
    world.emitter("order.*")(lambda message: calls.append(("orders", message.topic)))
    world.emitter("*")(lambda message: calls.append(("rest", message.topic)))
    world.publish(topic="order.paid")
    world.publish(topic="user.left")
    await world.drain().step()
    assert sorted(calls) == [("orders", "order.paid"), ("rest", "user.left")]
    assert world.states() == ["delivered", "delivered"]


async def test_a_slow_emitter_times_out_and_is_tried_again():
    world = World()

    @world.emitter(timeout=timedelta(milliseconds=20))
    async def send(message):
        await asyncio.sleep(10)

    world.publish()
    drained = await world.drain().step()
    assert drained.settled == {"retry": 1}
    assert world.store.rows[1].failure == "timeout"


async def test_a_batch_emitter_settles_one_by_one_and_of_a_key_the_part_without_a_gap():
    world, sizes = World(), []

    @world.emitter(batch=10)
    async def send(messages):
        sizes.append(len(messages))
        return [ValueError("no") if message.payload == 1 else Delivered() for message in messages]

    world.publish(3, key="k")
    world.publish(3)
    await world.drain().step()
    assert sizes == [6]
    assert world.states() == ["delivered", "pending", "pending", "delivered", "pending", "delivered"]
    assert [row.attempts for row in world.store.rows.values()] == [0, 1, 0, 0, 1, 0]


async def emit_chains(world: World, *sizes: int) -> None:
    """Of each key so many at once, as a claim of lanes gives them."""
    for number, size in enumerate(sizes):
        world.publish(size, key=f"k{number}")
    drain = world.drain()
    [emission] = drain._emissions.values()
    wanted, asked = drain._request(isolated=False), clock()
    held = iter([drain._hold(each, wanted, asked) for each in (await world.store.claim(wanted)).messages])
    emission.submit([list(islice(held, size)) for size in sizes])
    await drain._quiet()
    await drain.abandon()


async def test_no_two_batches_hold_messages_of_one_key_at_a_time():
    """The second could arrive before the first, and would go on behind what failed in it."""
    world, in_hand, together, sent = World(), Counter(), [], []

    @world.emitter(batch=30)
    async def send(messages):
        keys = {message.key for message in messages}
        in_hand.update(keys)
        together.extend(key for key in keys if in_hand[key] > 1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        in_hand.subtract(keys)
        sent.extend((message.key, message.payload) for message in messages)

    await emit_chains(world, 45, 45, 10)
    assert together == []
    for key, size in (("k0", 45), ("k1", 45), ("k2", 10)):
        assert [payload for of, payload in sent if of == key] == list(range(size))


async def test_behind_a_batch_with_a_gap_no_other_of_its_key_is_sent():
    world, sizes = World(), []

    @world.emitter(batch=10)
    async def send(messages):
        sizes.append(len(messages))
        return [ValueError("no") if message.payload == 15 else Delivered() for message in messages]

    await emit_chains(world, 35)
    assert sizes == [10, 10]
    assert world.states() == ["delivered"] * 15 + ["pending"] * 20
    assert [row.attempts for row in world.store.rows.values()] == [0] * 15 + [1] + [0] * 19


@pytest.mark.parametrize("answer", [[Delivered()], ValueError("no")])
async def test_a_batch_that_fails_or_miscounts_is_tried_again_as_a_whole(answer):
    world = World()

    @world.emitter(batch=10)
    async def send(messages):
        if isinstance(answer, Exception):
            raise answer
        return answer

    world.publish(3)
    assert (await world.drain().step()).settled == {"retry": 3}


async def test_outcomes_in_a_tuple_are_one_for_each_message_too():
    world = World()

    @world.emitter(batch=10)
    async def send(messages):
        return ValueError("no"), Delivered()

    world.publish(2)
    assert (await world.drain().step()).settled == {"retry": 1, "delivered": 1}


async def test_a_code_may_be_a_number():
    world = World()

    @world.emitter()
    async def send(message):
        return Dead(404)

    world.publish()
    drain = world.drain()
    assert (await drain.step()).settled == {"dead": 1}
    assert (world.store.rows[1].failure, drain.in_hand) == ("404", 0)


async def test_a_topic_that_keeps_failing_is_left_alone_and_its_messages_keep_their_attempts():
    world = World(outbox_concurrency=1)

    @world.emitter()
    async def send(message):
        raise ValueError("down")

    world.publish(20)
    drain = world.drain()
    await drain.step()
    await drain._breakers.write()
    assert sorted(row.attempts for row in world.store.rows.values()) == [0] * 17 + [1] * 3
    assert "t" in world.store.breakers
    assert (await drain.step()).claimed == 0


async def test_failures_in_a_row_open_the_breaker_however_few_are_claimed_at_a_time():
    world = World()

    @world.emitter()
    async def send(message):
        raise ValueError("down")

    drain = world.drain()
    for _ in range(3):
        world.publish()
        assert (await drain.step()).settled == {"retry": 1}
    await drain._breakers.write()
    assert "t" in world.store.breakers


async def test_a_worker_tries_a_topic_again_that_another_found_to_be_well():
    world, down = World(outbox_concurrency=1), [True]

    @world.emitter()
    async def send(message):
        if down[0]:
            raise ValueError("down")

    world.publish(3)
    drain = world.drain()
    await drain.step()
    await drain._breakers.write()
    down[0] = False
    await world.store.close_breaker("t")
    world.publish()
    assert (await drain.step()).settled == {"delivered": 1}


async def test_what_the_breaker_found_is_told_at_once():
    """A probe that succeeds would open the road only at the next poll, with nothing else to wake the worker."""
    world, down = World(outbox_concurrency=1), [True]

    @world.emitter()
    async def send(message):
        if down[0]:
            raise ValueError("down")

    world.publish(5)
    drain = world.drain()
    component = DrainComponent(drain, emit=world.events.append)
    running = asyncio.create_task(component.run())
    await eventually(lambda: world.store.breakers)
    down[0] = False
    world.store.breakers["t"].probe_at -= timedelta(hours=1)
    for row in world.store.rows.values():
        row.available_at -= timedelta(hours=2)
    component.wake()
    await eventually(lambda: world.states() == ["delivered"] * 5, 25, "deliveries long before the next poll")
    component.stop()
    await running


async def test_a_successful_probe_closes_the_breaker():
    world, down = World(outbox_concurrency=1), [True]

    @world.emitter()
    async def send(message):
        if down[0]:
            raise ValueError("down")

    world.publish(5)
    drain = world.drain()
    await drain.step()
    await drain._breakers.write()
    down[0] = False
    world.store.breakers["t"].probe_at -= timedelta(hours=1)
    for row in world.store.rows.values():
        row.available_at -= timedelta(hours=2)
    assert (await drain.step()).settled == {"delivered": 1}
    await drain._breakers.write()
    assert world.store.breakers == {}
    assert (await drain.step()).settled == {"delivered": 4}


@pytest.mark.parametrize("end", ["finish", "close"])
@pytest.mark.parametrize("batch", [None, 1])
async def test_a_stop_gives_back_what_waits_behind_a_delivery_that_never_ends(end, batch):
    """Claims that run out would be charged as crashes, to messages that nobody tried."""
    world, began, go_on = World(outbox_concurrency=1), asyncio.Event(), asyncio.Event()

    @world.emitter(batch=batch)
    async def send(_message):
        began.set()
        await go_on.wait()

    world.publish(5)
    drain = world.drain()
    await drain.tick()
    await began.wait()
    ending = asyncio.create_task(getattr(drain, end)())
    waiting = [row for row in world.store.rows.values() if row.id > 1]
    await eventually(lambda: [(row.token, row.claims) for row in waiting] == [(None, 0)] * 4)
    go_on.set()
    await ending
    assert drain.in_hand == 0


async def test_a_chain_that_is_cut_off_gives_back_what_was_not_begun():
    world, began = World(outbox_concurrency=1), asyncio.Event()

    @world.emitter()
    async def send(_message):
        began.set()
        await asyncio.Event().wait()

    world.publish(3, key="k")
    drain = world.drain()
    [emission] = drain._emissions.values()
    wanted = drain._request(isolated=False)
    asked = clock()
    held = [drain._hold(each, wanted, asked) for each in (await world.store.claim(wanted)).messages]
    emission.submit([held])
    await began.wait()
    await drain.close()
    rows = world.store.rows.values()
    assert [(str(row.state), row.token, row.claims) for row in rows] == [("pending", None, n) for n in (1, 0, 0)]


async def test_what_is_submitted_in_the_moment_in_which_the_last_runner_ends_is_delivered():
    """The runner is done, and its callback not called yet: for the next message nobody would be started."""
    world, calls = World(outbox_concurrency=1), []
    world.emitter()(lambda message: calls.append(message.payload))
    world.publish(2)
    drain = world.drain()
    [emission] = drain._emissions.values()
    wanted = drain._request(isolated=False)
    first, second = [drain._hold(each, wanted, clock()) for each in (await world.store.claim(wanted)).messages]
    settle = emission._settle

    def settle_and_submit(held, settlement):
        settle(held, settlement)
        if held is first:
            asyncio.get_running_loop().call_soon(emission.submit, [[second]])

    emission._settle = settle_and_submit
    emission.submit([[first]])
    await eventually(lambda: len(calls) == 2, what="the second call")
    await drain.abandon()
    assert calls == [0, 1]


async def test_no_delivery_starts_with_less_lease_than_its_time():
    lease, timeout = timedelta(seconds=3), timedelta(seconds=2)
    world = World(outbox_concurrency=1, outbox_lease=lease)
    left = []

    @world.emitter(timeout=timeout)
    async def send(message):
        row = world.store.rows[message.claimed.id]
        left.append((row.available_at - type(row.available_at).now(row.available_at.tzinfo)).total_seconds())
        await asyncio.sleep(0.1)

    world.publish(20)
    assert (await world.drain().step()).settled == {"delivered": 20}
    assert min(left) >= timeout.total_seconds()


@pytest.mark.parametrize("batch", [None, 2])
async def test_what_expires_in_hand_is_not_emitted(batch):
    """It waits behind slow deliveries, and its claim is renewed for as long as it takes."""
    world, sent = World(outbox_concurrency=1), []

    @world.emitter(batch=batch)
    async def send(_message):
        sent.append(time.monotonic() - began)
        await asyncio.sleep(0.25)

    world.publish(8, expires=timedelta(seconds=0.4))
    began, drain = time.monotonic(), world.drain()
    await drain.step()
    assert 0 < len(sent) <= 2
    assert max(sent) < 0.4
    await eventually(lambda: _steps(drain, lambda: "pending" not in world.states()))
    assert world.states().count("expired") == 8 - len(sent) * (batch or 1)


async def _steps(drain, until) -> bool:
    await drain.step()
    return until()


async def test_what_the_receiver_may_forget_while_it_is_in_hand_is_not_sent_again():
    world, sent = World(outbox_concurrency=1), []

    @world.emitter(idempotency_window=timedelta(seconds=0.15))
    async def send(message):
        sent.append(message.payload)
        await asyncio.sleep(0.2)

    world.publish(2)
    row = world.store.rows[2]
    row.claims, row.first_emitted_at = 1, row.published_at
    drain = world.drain()
    await drain.step()
    await eventually(lambda: _steps(drain, lambda: "pending" not in world.states()))
    assert sent == [0]
    assert world.states() == ["delivered", "needs_review"]


async def test_control_without_renewal_the_lease_would_not_last():
    world = World(outbox_concurrency=1, outbox_lease=timedelta(seconds=0.4))

    @world.emitter(timeout=timedelta(seconds=0.2))
    async def send(message):
        await asyncio.sleep(0.05)

    async def refuse(held, lease):
        return set()

    world.store.renew = refuse
    world.publish(20)
    drained = await world.drain().step()
    assert drained.settled["delivered"] < 20


async def test_a_suspect_is_delivered_with_nothing_else_in_hand():
    world, together = World(), []
    drain = None

    @world.emitter()
    async def send(message):
        together.append((message.payload, drain.in_hand))

    world.publish(10)
    world.store.rows[5].crashes = 2
    drain = world.drain()
    await drain.step()
    assert dict(together)[4] == 1
    assert world.states() == ["delivered"] * 10


async def test_a_suspect_is_not_held_while_others_are_in_hand():
    """They may take longer than its claim, or end this process: either would be charged to it, for the last time."""
    world, go_on, together = World(), asyncio.Event(), []

    @world.emitter("slow")
    async def slow(_message):
        await go_on.wait()

    @world.emitter("suspect")
    async def send(_message):
        together.append(drain.in_hand)

    world.publish(2, topic="slow")
    world.publish(topic="suspect")
    suspect = world.store.rows[3]
    suspect.crashes = 2
    drain = world.drain()
    ticking = asyncio.create_task(drain.tick())
    await eventually(lambda: any(isinstance(event, MessagesReleased) for event in world.events))
    assert (suspect.token, suspect.claims, suspect.crashes) == (None, 0, 2)
    go_on.set()
    await ticking
    await drain.abandon()
    assert together == [1]
    assert world.states() == ["delivered"] * 3


async def test_context_tells_key_redelivery_and_deadline():
    world, contexts = World(), []

    @world.emitter(timeout=timedelta(seconds=5))
    async def send(message, context):
        contexts.append(context)

    world.publish(message_id="m")
    world.store.rows[1].claims = 1
    await world.drain().step()
    [context] = contexts
    assert (context.idempotency_key, context.redelivery, context.attempt) == ("m", True, 1)
    assert 4 < context.deadline - time.monotonic() + 1 < 6.1
    assert context.remaining() <= timedelta(seconds=5)


async def test_a_database_that_fails_to_renew_or_to_take_back_costs_no_room():
    world = World(outbox_concurrency=1, outbox_lease=timedelta(seconds=2))

    @world.emitter(timeout=timedelta(seconds=1))
    async def send(message):
        await asyncio.sleep(0.1)

    async def fail(*_):
        raise OSError("away")

    world.store.renew = world.store.release = fail
    world.publish(20)
    drain = world.drain()
    await drain.step()
    assert drain.in_hand == 0
    assert [emission.in_hand for emission in drain._emissions.values()] == [0]
    assert "SettlingFailed" in {type(event).__name__ for event in world.events}
    assert 0 < world.states().count("delivered") < 20


async def test_a_breaker_that_cannot_be_written_is_written_later():
    world = World(outbox_concurrency=1)

    @world.emitter()
    async def send(message):
        raise ValueError("down")

    async def fail(*_):
        raise OSError("away")

    world.publish(5)
    drain = world.drain()
    await drain.step()
    whole, world.store.open_breaker = world.store.open_breaker, fail
    with pytest.raises(OSError, match="away"):
        await drain._breakers.write()
    world.store.open_breaker = whole
    await drain._breakers.write()
    assert "t" in world.store.breakers


async def test_as_many_plain_functions_as_are_delivered_at_once_have_a_thread_each():
    """Whoever waits for a thread runs out of time without a call: the standard executor has six on two cores."""
    world, met = World(outbox_concurrency=12), threading.Barrier(12, timeout=60)
    world.emitter()(lambda _: met.wait())
    world.publish(12)
    assert (await world.drain().step()).settled == {"delivered": 12}


async def test_a_plain_function_that_hands_back_a_coroutine_is_awaited():
    world, sent = World(), []

    async def send(message):
        await asyncio.sleep(0)
        sent.append(message.payload)
        raise ValueError("the receiver is unwell")

    world.emitter()(lambda message: send(message))  # noqa: PLW0108  as a decorator that knows of no coroutines
    world.publish()
    assert (await world.drain().step()).settled == {"retry": 1}
    assert sent == [0]


async def test_what_a_plain_function_leaves_behind_does_not_stand_in_the_way_of_others():
    world, go_on, calls = World(outbox_concurrency=1), threading.Event(), []

    @world.emitter(timeout=timedelta(milliseconds=50))
    def send(message):
        calls.append(message.payload)
        if message.payload == 0:
            go_on.wait(60)

    world.publish(2)
    assert (await world.drain().step()).settled == {"retry": 1, "delivered": 1}
    go_on.set()
    assert calls == [0, 1]


async def test_no_plain_function_is_called_after_its_time_ran_out():
    """Two threads are left behind, so the third message finds none: it is tried again, and not sent unheard later."""
    world, go_on, calls = World(outbox_concurrency=1), threading.Event(), []

    @world.emitter(timeout=timedelta(milliseconds=50))
    def send(message):
        calls.append(message.payload)
        go_on.wait(60)

    world.publish(3)
    drain = world.drain()
    assert (await drain.step()).settled["retry"] == 3
    go_on.set()
    await drain.abandon()
    assert calls == [0, 1]


class Deadly(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Panic(BaseException):
    """As libraries written in Rust raise where they find themselves broken."""


STRANGE = [asyncio.CancelledError("a task it waited for"), StopIteration("end"), SystemExit(1), Deadly(), Panic("no")]


@pytest.mark.parametrize("error", STRANGE, ids=repr)
@pytest.mark.parametrize("is_async", [True, False])
async def test_strange_errors_are_failures_of_the_delivery_like_any_other(error, is_async):
    world = World(outbox_concurrency=1)

    def fail(_message):
        raise error

    async def fail_later(_message):
        raise error

    world.emitter(timeout=timedelta(seconds=20))(fail_later if is_async else fail)
    world.publish(2)
    async with asyncio.timeout(15):
        assert (await world.drain().step()).settled == {"retry": 2}


async def test_a_record_id_that_has_no_text_is_still_a_delivery():
    world = World(outbox_concurrency=1)
    world.emitter()(lambda _message: Delivered(Deadly()))
    world.publish(2)
    drain = world.drain()
    assert (await drain.step()).settled == {"delivered": 2}
    assert world.store.rows[1].record_id == "its text cannot be shown: SystemExit"


@pytest.mark.parametrize("error", [SystemExit, Panic])
@pytest.mark.parametrize("batch", [None, 10])
async def test_a_drain_goes_on_after_an_emitter_that_exits(batch, error):
    world, calls = World(outbox_concurrency=1), []

    @world.emitter(batch=batch)
    async def send(_message):
        calls.append(1)
        if len(calls) == 1:
            raise error(1)

    drain = world.drain()
    async with asyncio.timeout(15):
        for expected in ("retry", "delivered"):
            world.publish()
            assert (await drain.step()).settled == {expected: 1}
            assert drain.in_hand == 0


@pytest.mark.parametrize(
    ("answer", "settled", "told"),
    [
        (Delivered(), "delivered", "MessageDelivered"),
        (Dead(), "dead", "MessageEnded"),
        (Retry(timedelta(hours=1)), "retry", "MessageRetried"),
    ],
)
async def test_an_end_whose_answer_was_lost_is_told_as_what_it_is(answer, settled, told):
    """It was written all the same, and the second try finds it so; nobody would hear of a message that is dead."""
    world = World()
    world.emitter()(lambda _message: answer)
    world.publish()
    settle, tries = world.store.settle, []

    async def lose_the_first_answer(settlements):
        answers = await settle(settlements)
        tries.append(answers)
        if len(tries) == 1:
            raise ConnectionResetError
        return answers

    world.store.settle = lose_the_first_answer
    assert (await world.drain().step()).settled == {settled: 1}
    assert [str(each) for answers in tries for each in answers] == ["applied", "applied"]
    assert world.store.rows[1].attempts == (settled != "delivered")
    assert told in {type(event).__name__ for event in world.events}


async def test_behind_a_message_that_the_claim_ended_the_next_is_looked_for_at_once():
    """Where order counts it stood in front of the rest of its key, which waited for the next poll."""
    world = World()
    world.emitter()(lambda _message: None)
    world.publish(expires=timedelta(microseconds=1))
    drain = world.drain()
    assert await drain.tick() == timedelta(0)
    assert world.states() == ["expired"]
    assert await drain.tick() > timedelta(0)
