"""The supervisor: order, rollback, one deadline for all, and signals (sent to a real process)."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from interlock.errors import ComponentEnded
from interlock.observe.bus import discard
from interlock.observe.events import ComponentAbandoned, ComponentFailed, Draining, LoopFailed, Stopped
from interlock.runtime import last_resort
from interlock.runtime.loop import Loop
from interlock.runtime.supervisor import LoopComponent, Supervisor

AN_HOUR = timedelta(hours=1)
A_MOMENT = timedelta(milliseconds=20)


class Part:
    """A component that writes down what happens to it."""

    def __init__(self, name, story, *, fails_to_start=False, dies=None, lingers=False, stubborn=False, jobs=0):
        self.name, self.story, self.jobs = name, story, jobs
        self.fails_to_start, self.dies, self.lingers, self.stubborn = fails_to_start, dies, lingers, stubborn
        self.asked, self.running, self.release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def busy(self):
        return self.jobs

    async def start(self):
        self.story.append(f"start {self.name}")
        if self.fails_to_start:
            raise OSError(self.name)

    async def run(self):
        self.running.set()
        try:
            if self.dies is not None:
                await self.dies(self)
                return
            await self.asked.wait()
            if self.lingers:
                await asyncio.Event().wait()
            self.story.append(f"end {self.name}")
        except asyncio.CancelledError:
            self.story.append(f"cancel {self.name}")
            if self.stubborn:
                await self.release.wait()
            raise

    def stop(self):
        self.story.append(f"stop {self.name}")
        self.asked.set()


async def raises(part):
    raise OSError(part.name)


async def returns(_):
    return


async def is_cancelled(_):
    raise asyncio.CancelledError


def supervisor(parts, events=None, **options):
    return Supervisor(parts, emit=discard if events is None else events.append, **options)


async def test_components_start_in_order_and_stop_in_reverse():
    story, events = [], []
    parts = [Part("a", story, jobs=2), Part("b", story), Part("c", story, jobs=3)]
    watched = supervisor(parts, events)
    running = asyncio.create_task(watched.run_until_stopped())
    await parts[-1].running.wait()
    await asyncio.to_thread(watched.request_stop)
    async with asyncio.timeout(60):
        await running
    assert story == ["start a", "start b", "start c", "stop c", "end c", "stop b", "end b", "stop a", "end a"]
    assert events[0] == Draining(jobs=5, timeout=timedelta(seconds=30))
    assert isinstance(events[-1], Stopped)
    assert not watched.forced


async def test_who_wants_to_know_is_told_that_the_server_stops_before_anything_is_stopped():
    story = []
    parts = [Part("a", story), Part("b", story)]
    parts[0].draining = lambda: story.append("a drains")
    watched = supervisor(parts)
    await watched.start()
    await watched.stop()
    assert story == ["start a", "start b", "a drains", "stop b", "end b", "stop a", "end a"]


async def test_a_failed_start_stops_those_before_it_and_raises_its_error():
    story = []
    parts = [Part("a", story), Part("b", story), Part("c", story, fails_to_start=True), Part("d", story)]
    with pytest.raises(OSError, match="c"):
        await supervisor(parts).run_until_stopped()
    assert story == ["start a", "start b", "start c", "stop b", "end b", "stop a", "end a"]


async def test_a_stop_request_ends_a_start_that_hangs():
    story, hanging = [], asyncio.Event()

    class Hangs(Part):
        async def start(self):
            hanging.set()
            await asyncio.Event().wait()

    watched = supervisor([Part("a", story), Hangs("b", story), Part("c", story)])
    running = asyncio.create_task(watched.run_until_stopped())
    await hanging.wait()
    watched.request_stop()
    async with asyncio.timeout(60):
        await running
    assert story == ["start a", "stop a", "end a"]


async def test_a_stop_request_before_the_start_starts_nothing():
    story = []
    watched = supervisor([Part("a", story)])
    watched.request_stop()
    await watched.run_until_stopped()
    assert story == []


async def test_all_components_share_one_deadline_and_are_cancelled_then():
    story = []
    parts = [Part("a", story, lingers=True), Part("b", story, lingers=True)]
    watched = supervisor(parts, shutdown_timeout=A_MOMENT)
    await watched.start()
    async with asyncio.timeout(60):
        await watched.stop()
    assert story == ["start a", "start b", "stop b", "cancel b", "stop a", "cancel a"]
    assert not watched.forced


async def test_force_cancels_before_the_deadline():
    story = []
    part = Part("a", story, lingers=True)
    watched = supervisor([part], shutdown_timeout=AN_HOUR)
    running = asyncio.create_task(watched.run_until_stopped())
    await part.running.wait()
    watched.request_stop()
    await part.asked.wait()
    await asyncio.to_thread(watched.force)
    async with asyncio.timeout(60):
        await running
    assert story[-1] == "cancel a"
    assert watched.forced


async def test_a_component_that_ignores_its_cancellation_is_left_behind_and_named():
    story, events = [], []
    parts = [Part("a", story), Part("b", story, lingers=True, stubborn=True)]
    watched = supervisor(parts, events, shutdown_timeout=A_MOMENT, cleanup_timeout=A_MOMENT)
    await watched.start()
    async with asyncio.timeout(60):
        await watched.stop()
    assert ComponentAbandoned(component="b") in events
    assert story[-1] == "end a"
    parts[1].release.set()


async def test_a_cancelled_caller_forces_and_still_leaves_nothing_running():
    story = []
    part = Part("a", story, lingers=True)
    running = asyncio.create_task(supervisor([part], shutdown_timeout=AN_HOUR).run_until_stopped())
    await part.running.wait()
    running.cancel()
    await part.asked.wait()
    running.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await running
    assert story[-1] == "cancel a"


@pytest.mark.parametrize(
    ("death", "error"), [(raises, OSError), (returns, ComponentEnded), (is_cancelled, ComponentEnded)]
)
async def test_a_component_that_ends_by_itself_ends_the_server_with_its_error(death, error):
    story, events = [], []
    parts = [Part("a", story), Part("b", story, dies=death), Part("c", story)]
    async with asyncio.timeout(60):
        with pytest.raises(error):
            await supervisor(parts, events).run_until_stopped()
    failed = [e for e in events if isinstance(e, ComponentFailed)]
    assert [e.component for e in failed] == ["b"]
    assert isinstance(failed[0].error, error)
    assert story[-2:] == ["stop a", "end a"]


async def test_a_component_that_dies_while_others_start_ends_the_start():
    story = []
    gone = asyncio.Event()

    async def dies(_):
        gone.set()
        raise OSError

    class Slow(Part):
        async def start(self):
            await gone.wait()
            await asyncio.Event().wait()

    async with asyncio.timeout(60):
        with pytest.raises(OSError):
            await supervisor([Part("a", story, dies=dies), Slow("b", story)]).start()


async def test_an_error_in_one_stop_does_not_keep_the_others_from_stopping():
    story, events = [], []

    class Refuses(Part):
        def stop(self):
            raise ValueError

    watched = supervisor([Part("a", story), Refuses("b", story)], events, shutdown_timeout=AN_HOUR)
    await watched.start()
    with pytest.raises(ValueError):
        await watched.stop()
    assert story[-3:] == ["cancel b", "stop a", "end a"]


async def test_stopping_twice_stops_once():
    story = []
    watched = supervisor([Part("a", story)])
    await watched.start()
    await asyncio.gather(watched.stop(), watched.stop())
    await watched.stop()
    assert story == ["start a", "stop a", "end a"]


async def test_a_loop_is_a_component():
    ticked, events = asyncio.Event(), []

    async def tick():
        ticked.set()
        return AN_HOUR

    watched = supervisor([LoopComponent(Loop("t", tick, emit=events.append), busy=lambda: 4)], events)
    running = asyncio.create_task(watched.run_until_stopped())
    await ticked.wait()
    watched.request_stop()
    async with asyncio.timeout(60):
        await running
    assert events[0] == Draining(jobs=4, timeout=timedelta(seconds=30))
    assert not [e for e in events if isinstance(e, LoopFailed)]


async def test_outside_the_main_thread_signals_are_left_alone():
    before = signal.getsignal(signal.SIGTERM)

    async def inside():
        with supervisor([]).handle_signals():
            return signal.getsignal(signal.SIGTERM)

    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(inside())))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert found == [before]


async def test_handlers_are_restored_afterwards():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with supervisor([]).handle_signals():
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


SERVER = """
import asyncio, sys, time
from datetime import timedelta
from interlock.observe.events import Draining
from interlock.runtime import last_resort
from interlock.runtime.supervisor import Supervisor

last_resort.BLOCKED, last_resort.SLOW = map(float, sys.argv[2:])

def say(text):
    print(text, flush=True)

class Worker:
    name = "worker"
    asked = asyncio.Event()
    def busy(self): return 7
    async def start(self): pass
    async def run(self):
        say("running")
        if sys.argv[1] == "blocks":
            block_the_loop()
        try:
            await self.asked.wait()
            if sys.argv[1].startswith("blocks"):
                await asyncio.Event().wait()
            if sys.argv[1] == "lingers":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("cancelled")
            if sys.argv[1] == "blocks when cancelled":
                block_the_loop()
            raise
    def stop(self): self.asked.set()

def block_the_loop():
    while True:
        time.sleep(600)

def emit(event):
    if isinstance(event, Draining):
        say(f"draining {event.jobs}")

async def main():
    supervisor = Supervisor([Worker()], emit=emit, shutdown_timeout=timedelta(hours=1))
    with supervisor.handle_signals():
        await supervisor.run_until_stopped()
    return 1 if supervisor.forced else 0

code = asyncio.run(main())
say("ended")
sys.exit(code)
"""


@pytest.fixture
def server():
    started = []

    def start(behaviour, *, blocked=600.0, slow=600.0):
        command = [sys.executable, "-c", SERVER, behaviour, str(blocked), str(slow)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "running\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains_and_says_how_many_jobs_it_waits_for(server, number):
    process = server("obeys")
    process.send_signal(number)
    assert process.stdout.read().splitlines() == ["draining 7", "ended"]
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)],
)
def test_the_second_signal_forces(server, first, second):
    process = server("lingers")
    process.send_signal(first)
    assert process.stdout.readline() == "draining 7\n"
    assert process.poll() is None
    process.send_signal(second)
    assert process.stdout.read().splitlines() == ["cancelled", "ended"]
    assert process.wait(60) == 1


def test_the_second_signal_ends_a_server_whose_event_loop_is_blocked_and_shows_by_what(server):
    process = server("blocks", blocked=0.1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    said, shown = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "")
    assert "in block_the_loop" in shown


def test_it_does_so_too_where_a_body_blocks_as_it_is_cancelled(server):
    process = server("blocks when cancelled", slow=0.1)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "draining 7\n"
    process.send_signal(signal.SIGTERM)
    said, shown = process.communicate(timeout=60)
    assert (process.returncode, said) == (1, "cancelled\n")
    assert "in block_the_loop" in shown


async def test_one_that_ends_by_itself_after_the_second_signal_is_not_ended(monkeypatch):
    story = []
    monkeypatch.setattr(last_resort, "end_in", story.append)
    monkeypatch.setattr(last_resort, "call_off", lambda: story.append("called off"))
    watched = supervisor([Part("a", [], lingers=True)], shutdown_timeout=AN_HOUR)
    with watched.handle_signals():
        running = asyncio.create_task(watched.run_until_stopped())
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
        await running
    assert story == [last_resort.BLOCKED, last_resort.SLOW, "called off"]
    assert watched.forced


async def test_after_one_signal_the_time_is_not_limited(monkeypatch):
    monkeypatch.setattr(last_resort, "end_in", pytest.fail)
    watched = supervisor([Part("a", [])])
    with watched.handle_signals():
        running = asyncio.create_task(watched.run_until_stopped())
        signal.raise_signal(signal.SIGTERM)
        await running
    assert not watched.forced
