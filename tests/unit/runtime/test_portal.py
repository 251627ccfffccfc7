"""The portal: blocking calls from any thread, after a fork, at exit, and never inside an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from interlock.errors import SyncCallInEventLoop
from interlock.runtime.portal import Portal


@pytest.fixture
def portal():
    opened = Portal()
    yield opened
    opened.close()


async def aname():
    return threading.current_thread().name, threading.get_ident()


async def adouble(number, *, plus=0):
    await asyncio.sleep(0)
    return number * 2 + plus


@contextmanager
def child(script):
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def run(script):
    with child(script) as process:
        out, err = process.communicate(timeout=60)
        return process.returncode, out.splitlines(), err


def test_a_call_blocks_and_answers_the_result(portal):
    assert portal.call(adouble, 4, plus=1) == 9


def test_what_the_coroutine_raises_is_raised(portal):
    async def araise():
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        portal.call(araise)


def test_all_threads_share_one_event_loop(portal):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(lambda _: portal.call(aname), range(200)))
    assert len(homes) == 1
    assert homes.pop()[0] == "interlock-portal"


def test_a_call_runs_in_the_context_of_its_caller(portal):
    variable = contextvars.ContextVar("variable", default="outside")

    async def aread():
        return variable.get()

    token = variable.set("inside")
    try:
        assert portal.call(aread) == "inside"
    finally:
        variable.reset(token)
    assert portal.call(aread) == "outside"


async def test_a_call_inside_an_event_loop_is_refused_and_names_the_async_twin(portal):
    with pytest.raises(SyncCallInEventLoop, match=r"await adouble\(") as refused:
        portal.call(adouble, 1)
    assert refused.value.exit_code == 2


def test_a_call_inside_the_portal_itself_is_refused_rather_than_blocked(portal):
    async def anested():
        return portal.call(adouble, 1)

    with pytest.raises(SyncCallInEventLoop):
        portal.call(anested)


async def test_a_thread_beside_an_event_loop_may_call(portal):
    assert await asyncio.to_thread(portal.call, adouble, 2) == 4


def test_closing_twice_is_harmless_and_a_later_call_opens_it_anew(portal):
    portal.call(aname)
    assert portal_threads() == 1
    portal.close()
    portal.close()
    assert portal_threads() == 0
    assert portal.call(adouble, 1) == 2


def portal_threads():
    return sum(thread.name == "interlock-portal" for thread in threading.enumerate())


def test_closing_cancels_a_call_in_progress_and_lets_it_clean_up(portal):
    began, cleaned = threading.Event(), threading.Event()

    async def await_for_ever():
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(portal.call, await_for_ever)
        assert began.wait(60)
        portal.close()
        with pytest.raises(concurrent.futures.CancelledError):
            call.result(60)
    assert cleaned.is_set()


def test_no_call_is_left_unanswered_while_others_close(portal):
    def call(number):
        try:
            return portal.call(adouble, number) == number * 2
        except concurrent.futures.CancelledError:
            return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call, number) for number in range(300)]
        for _ in range(20):
            portal.close()
        assert all(done.result(60) for done in calls)


FORK = """
import os, signal
from interlock.runtime.portal import portal

async def awho():
    return os.getpid()

assert portal.call(awho) == os.getpid()
child = os.fork()
if child == 0:
    signal.alarm(10)  # a child that hangs must not outlive the test
    try:
        answers = [portal.call(awho) for _ in range(3)]
        os._exit(0 if answers == [os.getpid()] * 3 else 1)
    except BaseException:
        os._exit(2)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert portal.call(awho) == os.getpid()
print("both work")
"""

FORK_WHILE_LOCKED = """
import os, signal
from interlock.runtime.portal import portal

async def anumber():
    return 5

portal._lock.acquire()  # as if another thread were submitting at this very moment
child = os.fork()
if child == 0:
    signal.alarm(10)
    os._exit(portal.call(anumber))
portal._lock.release()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), portal.call(anumber))
"""

MULTIPROCESSING = """
import multiprocessing, os
from interlock.runtime.portal import portal

async def adouble(number):
    return number * 2

def work(number):
    return portal.call(adouble, number)

portal.call(adouble, 1)
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(work, range(6)), portal.call(adouble, 50))
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [(FORK, ["both work"]), (FORK_WHILE_LOCKED, ["5 5"]), (MULTIPROCESSING, ["[0, 2, 4, 6, 8, 10] 100"])],
    ids=["fork", "fork-while-locked", "multiprocessing"],
)
def test_a_forked_child_opens_a_portal_of_its_own(script, said):
    code, out, err = run(script)
    assert (code, out) == (0, said), err


def test_control_a_child_that_keeps_the_inherited_portal_is_never_answered():
    script = FORK.replace("async def awho", "type(portal)._forget = lambda self: None\n\nasync def awho")
    code, out, err = run(script)
    assert (code, out) == (1, [])
    assert f"AssertionError: {signal.SIGALRM.value}" in err


INTERRUPT = """
import asyncio
from interlock.runtime.portal import portal

async def await_for_ever():
    print("began", flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("coroutine cancelled", flush=True)
        raise

async def ahello():
    return "hello"

try:
    portal.call(await_for_ever)
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(portal.call(ahello), flush=True)
"""


def test_an_interrupt_cancels_the_coroutine_before_it_surfaces():
    with child(INTERRUPT) as process:
        assert process.stdout.readline() == "began\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.splitlines() == ["coroutine cancelled", "interrupted", "hello"], err
    assert process.returncode == 0


EXIT = """
import asyncio
from interlock.runtime.portal import portal

async def abackground():
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up", flush=True)

async def astart():
    global task
    task = asyncio.create_task(abackground())
    await asyncio.sleep(0)

portal.call(astart)
print("main ends", flush=True)
"""


def test_at_exit_the_portal_ends_cleanly():
    code, out, err = run(EXIT)
    assert (code, out, err) == (0, ["main ends", "cleaned up"], "")
