"""The loop: no notice is lost, no failure is final, no stop waits."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from datetime import timedelta

import pytest

from interlock.observe.bus import discard
from interlock.observe.events import LoopFailed, LoopRecovered
from interlock.runtime.loop import IMMEDIATELY, Loop, LoopBackoff

AN_HOUR = timedelta(hours=1)
QUICK = LoopBackoff(first=timedelta(milliseconds=1), max=timedelta(milliseconds=4))


class NaiveLoop(Loop):
    """The obvious version, which forgets what arrived during the tick; the control of the tests below."""

    async def run(self):
        while not self._stopped.is_set():
            delay = await self._tick()
            self._woken.clear()
            await self._woken.wait(delay)


class Ticks:
    """A tick that a test steps through: it says when it began and waits until it may end."""

    def __init__(self):
        self.began = asyncio.Queue()
        self.may_end = asyncio.Semaphore(0)

    async def __call__(self):
        self.began.put_nowait(None)
        await self.may_end.acquire()
        return AN_HOUR


async def wake_during_the_first_tick(kind, wake, patience: float) -> bool:
    """Whether a second tick follows a notice that arrived while the first was running."""
    ticks = Ticks()
    loop = kind("t", ticks, emit=discard)
    running = asyncio.create_task(loop.run())
    await ticks.began.get()
    await wake(loop)
    ticks.may_end.release()
    try:
        async with asyncio.timeout(patience):
            await ticks.began.get()
    except TimeoutError:
        return False
    else:
        return True
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def wake_here(loop):
    loop.wake()


async def wake_in_a_thread(loop):
    await asyncio.to_thread(loop.wake)


@pytest.mark.parametrize("wake", [wake_here, wake_in_a_thread])
async def test_a_notice_that_arrives_during_a_tick_is_not_lost(wake):
    assert await wake_during_the_first_tick(Loop, wake, 60)


@pytest.mark.parametrize("wake", [wake_here, wake_in_a_thread])
async def test_control_a_loop_that_clears_after_the_tick_loses_the_notice(wake):
    assert not await wake_during_the_first_tick(NaiveLoop, wake, 0.5)


async def test_many_notices_during_one_tick_make_one_more_tick():
    count = 0

    async def tick():
        nonlocal count
        count += 1
        if count == 1:
            for _ in range(100):
                loop.wake()
        return AN_HOUR if count < 3 else IMMEDIATELY

    loop = Loop("t", tick, emit=discard)
    running = asyncio.create_task(loop.run())
    while loop.ticks < 2:  # noqa: ASYNC110  every turn of the event loop is looked at
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert count == 2
    loop.stop()
    await running


class TellingSelector(selectors.DefaultSelector):
    """Says when the event loop has nothing left to do and has decided to wait."""

    def __init__(self):
        super().__init__()
        self.waits = threading.Event()

    def select(self, timeout=None):
        if timeout is None or timeout > 1:
            self.waits.set()
        return super().select(timeout)


@pytest.mark.parametrize("call", ["wake", "stop"])
def test_a_thread_reaches_a_loop_whose_event_loop_waits_for_input(call):
    selector = TellingSelector()

    async def tick():
        if loop.ticks:
            loop.stop()
        return AN_HOUR

    loop = Loop("t", tick, emit=discard)

    async def main():
        async with asyncio.timeout(60):
            await loop.run()

    def reach():
        selector.waits.wait()
        getattr(loop, call)()

    thread = threading.Thread(target=reach)
    thread.start()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())
    thread.join()
    assert loop.ticks == (2 if call == "wake" else 1)


async def test_every_notice_of_many_threads_is_answered():
    began = asyncio.Queue()

    async def tick():
        began.put_nowait(None)
        return AN_HOUR

    loop = Loop("t", tick, emit=discard)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(60):
        for _ in range(200):
            await began.get()
            threading.Thread(target=loop.wake).start()
        loop.stop()
        await running


async def test_a_notice_before_the_start_skips_the_first_delay():
    async def tick():
        loop.stop()
        return AN_HOUR

    loop = Loop("t", tick, emit=discard, first_delay=AN_HOUR)
    await asyncio.to_thread(loop.wake)
    async with asyncio.timeout(60):
        await loop.run()
    assert loop.ticks == 1


async def test_the_first_delay_is_waited_for():
    loop = Loop("t", Ticks(), emit=discard, first_delay=AN_HOUR)
    running = asyncio.create_task(loop.run())
    for _ in range(20):
        await asyncio.sleep(0)
    loop.stop()
    await running
    assert loop.ticks == 0


@pytest.mark.parametrize("from_thread", [False, True])
async def test_stop_ends_a_sleep_at_once(from_thread):
    slept = asyncio.Event()

    async def tick():
        asyncio.get_running_loop().call_soon(slept.set)
        return AN_HOUR

    loop = Loop("t", tick, emit=discard)
    running = asyncio.create_task(loop.run())
    await slept.wait()
    began = time.monotonic()
    await (asyncio.to_thread(loop.stop) if from_thread else wake_stop(loop))
    async with asyncio.timeout(60):
        await running
    assert time.monotonic() - began < 20
    assert loop.ticks == 1


async def wake_stop(loop):
    loop.stop()


async def test_a_stop_by_a_thread_just_before_the_mark_is_cleared_is_not_overlooked(monkeypatch):
    async def tick():
        return AN_HOUR

    loop = Loop("t", tick, emit=discard)
    clear = loop._woken.clear

    def stop_and_clear():
        loop.stop()
        clear()

    monkeypatch.setattr(loop._woken, "clear", stop_and_clear)
    async with asyncio.timeout(60):
        await loop.run()
    assert loop.ticks == 0


async def test_stop_ends_a_pause_after_a_failure_at_once():
    failed = asyncio.Event()

    async def tick():
        raise OSError

    loop = Loop("t", tick, emit=lambda _: failed.set(), backoff=LoopBackoff(first=AN_HOUR, max=AN_HOUR))
    running = asyncio.create_task(loop.run())
    await failed.wait()
    loop.stop()
    async with asyncio.timeout(60):
        await running


async def test_stop_lets_a_running_tick_finish():
    ticks = Ticks()
    loop = Loop("t", ticks, emit=discard)
    running = asyncio.create_task(loop.run())
    await ticks.began.get()
    loop.stop()
    await asyncio.sleep(0)
    assert not running.done()
    ticks.may_end.release()
    await running
    assert loop.ticks == 1


async def test_cancellation_passes_through_a_tick():
    ticks = Ticks()
    loop = Loop("t", ticks, emit=discard)
    running = asyncio.create_task(loop.run())
    await ticks.began.get()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert loop.failures == 0


async def test_a_notice_does_not_cut_the_pause_after_a_failure_short():
    failed = asyncio.Queue()

    async def tick():
        raise OSError

    loop = Loop("t", tick, emit=failed.put_nowait, backoff=LoopBackoff(first=AN_HOUR, max=AN_HOUR))
    running = asyncio.create_task(loop.run())
    await failed.get()
    for _ in range(20):
        loop.wake()
        await asyncio.sleep(0)
    assert loop.failures == 1
    loop.stop()
    await running


async def run_through(outcomes, **options):
    """Run one tick per outcome (an exception is raised), then stop; answers the loop and its events."""
    events, left = [], list(outcomes)

    async def tick():
        outcome = left.pop(0)
        if not left:
            loop.stop()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    loop = Loop("t", tick, emit=events.append, backoff=QUICK, **options)
    async with asyncio.timeout(60):
        await loop.run()
    return loop, events


async def test_pauses_grow_to_the_maximum_and_start_anew_after_a_success():
    outcomes = [*[OSError()] * 5, IMMEDIATELY, OSError(), IMMEDIATELY]
    loop, events = await run_through(outcomes, random=lambda: 0.0)
    pauses = [e.retry_in / timedelta(milliseconds=1) for e in events if isinstance(e, LoopFailed)]
    assert pauses == [1, 2, 4, 4, 4, 1]
    assert [e.failures for e in events if isinstance(e, LoopRecovered)] == [5, 1]
    assert (loop.failures, loop.ticks) == (0, 2)
    assert loop.last_tick_at is not None


async def test_what_is_no_duration_is_a_failure_like_any_other():
    loop, events = await run_through([None, IMMEDIATELY])
    assert isinstance(events[0].error, TypeError)
    assert loop.ticks == 1


async def test_each_kind_of_failure_is_counted_by_itself():
    _, events = await run_through([OSError(), OSError(), ValueError(), OSError(), IMMEDIATELY, OSError()])
    assert [e.consecutive for e in events if isinstance(e, LoopFailed)] == [1, 2, 1, 3, 1]


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 5, 6, 50, 5_000])
def test_jitter_only_shortens_a_pause_and_two_seconds_are_the_most(failures):
    full = min(0.1 * 2.0 ** min(failures - 1, 10), 2.0)
    longest = LoopBackoff().pause(failures, lambda: 0.0).total_seconds()
    shortest = LoopBackoff().pause(failures, lambda: 1.0).total_seconds()
    assert longest == pytest.approx(full)
    assert shortest == pytest.approx(full / 2)


@pytest.mark.parametrize("delay", [IMMEDIATELY, timedelta(seconds=-1), AN_HOUR])
async def test_a_loop_that_never_sleeps_starves_nobody(delay):
    async def tick():
        loop.wake()
        return delay

    loop = Loop("t", tick, emit=discard)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(60):
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(0.001)
    assert loop.ticks > 1
    loop.stop()
    await running
