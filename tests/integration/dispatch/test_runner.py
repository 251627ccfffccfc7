"""A runner takes over what is submitted to it by one guarded write, however often, late or wrongly it is told."""

from __future__ import annotations

import asyncio
import socket
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest

from interlock import Interlock, failpoints
from interlock.dispatch.submitters.http import HttpSubmitter
from interlock.dispatch.submitters.protocol import Route
from interlock.errors import InvalidOption, InvalidSetting
from interlock.model.posted import Posted, encode
from interlock.model.signature import HEADER, signature
from interlock.observe.events import RunnerListening, SubmitFailed, TakeOverFailed
from interlock.store.notify import channel_of
from tests.harness.profile import SHORT_LEASES
from tests.harness.unguarded import take_guard_off
from tests.harness.waiting import eventually
from tests.integration.dispatch.ramp import Hands

if TYPE_CHECKING:
    from interlock.dispatch.submitters.protocol import Submission

SECRET = "a secret of some length"
OTHER_SERVER = uuid4()


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm()


@pytest.fixture
async def runner(migrated):
    """A runner in this process: what it ran, and the address at which it takes work."""
    app = Interlock(migrated, runner_secret=SECRET, worker_slots=2, **SHORT_LEASES)
    ran, may_end, listening = [], asyncio.Event(), []

    @app.train
    async def far(wait: bool = False) -> str:
        ran.append(time.monotonic())
        if wait:
            await may_end.wait()
        return "done"

    @app.train(concurrency=1)
    async def narrow() -> None:
        await may_end.wait()

    app.events.subscribe(listening.append, (RunnerListening, TakeOverFailed))
    async with app.running(runner="127.0.0.1:0") as keeper:
        url = f"http://127.0.0.1:{listening[0].port}"
        yield SimpleNamespace(app=app, url=url, said=listening, ran=ran, may_end=may_end, server=keeper.server)
        may_end.set()


class Line:
    """The line to a runner: what goes over it is seen, and the answer may be lost."""

    def __init__(self, url: str) -> None:
        self._http = HttpSubmitter(url, secret=SECRET)
        self.name, self.sent, self.lose = self._http.name, [], ""

    async def submit(self, submission: Submission) -> None:
        self.sent.append(submission)
        if self.lose != "request":
            await self._http.submit(submission)
        if self.lose:
            raise ConnectionError("the line broke")

    async def aclose(self) -> None:
        await self._http.aclose()


def dispatcher(ramp, line: Line, **settings):
    route = Route(line, frozenset({"far", "narrow"}))
    return ramp.dispatcher(remote=[route], server=lambda: OTHER_SERVER, hands=Hands(["work"]), **settings)


async def latest(ramp, entry_id: int):
    return await ramp.conn.fetchrow(
        "SELECT * FROM interlock.execution WHERE entry_id = $1 ORDER BY id DESC LIMIT 1", entry_id
    )


async def reaches(ramp, entry_id: int, state: str) -> None:
    async def is_there() -> bool:
        return (await latest(ramp, entry_id))["state"] == state

    await eventually(is_there, what=f"{state} of entry {entry_id}")


async def test_what_is_submitted_runs_on_the_runner_under_its_own_lease(ramp, runner):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    line = Line(runner.url)
    assert (await dispatcher(ramp, line).tick()).submitted == 1
    await reaches(ramp, id, "completed")
    row = await latest(ramp, id)
    assert (row["server_id"], row["submitter"], row["attempt"]) == (runner.server, runner.url, 1)
    assert row["claim_token"] not in (None, line.sent[0].token)
    assert len(runner.ran) == 1


async def test_a_runner_claims_no_jobs_of_the_table(ramp, runner):
    await ramp.queue(train="far")
    await ramp.dispatcher(hands=Hands(["far"])).tick()
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    await dispatcher(ramp, Line(runner.url)).tick()
    await reaches(ramp, id, "completed")
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 1
    assert len(runner.ran) == 1


async def test_a_message_that_comes_twice_runs_once(ramp, runner):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    line = Line(runner.url)
    await dispatcher(ramp, line).tick()
    again = await asyncio.gather(*(post(runner, posted_by(line)) for _ in range(5)))
    assert {answer.status_code for answer in again} == {409}
    await reaches(ramp, id, "completed")
    assert len(runner.ran) == 1


async def late_post(ramp, runner) -> tuple[httpx.Response, dict]:
    """The message is on its way while its sender gives up and queues the entry again."""
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    line = Line(runner.url)
    line.lose = "request"
    assert (await dispatcher(ramp, line).tick()).failed_submits == 1
    assert (await ramp.entry(id))["state"] == "queued"
    return await post(runner, posted_by(line)), dict(await ramp.entry(id))


async def test_a_message_that_comes_after_the_requeue_takes_nothing(ramp, runner):
    answer, entry = await late_post(ramp, runner)
    assert (answer.status_code, entry["state"], runner.ran) == (409, "queued", [])


@pytest.fixture
def unguarded(monkeypatch):
    taking = "\nwhere e.id = :id\n  and e.claim_token = :submitted\n  and e.state = 'pending'"
    anyhow = ", ended_at = null, failure = null\nwhere e.id = :id\n  and :submitted::uuid is not null"
    requeueing = "and e.claim_token = :token\n      and e.state = 'pending'"
    take_guard_off(monkeypatch, {"dispatch/take_over": taking}, anyhow)
    take_guard_off(monkeypatch, {"dispatch/requeue": requeueing}, "and :token::uuid is not null")


async def test_control_without_its_guard_a_late_message_takes_what_is_over_and_queued_again(unguarded, ramp, runner):
    """It is the watch over the tables of the tests that refuses what the guard did not."""
    answer, entry = await late_post(ramp, runner)
    assert (answer.status_code, entry["state"]) == (500, "queued")
    assert "failed -> in_progress" in str(runner.said[-1].error)


async def lost_answer(ramp, runner):
    """The runner took it, and the one who submitted never hears of that."""
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    await ramp.conn.execute("""UPDATE interlock.work_queue SET input = '{"wait": true}'""")
    line = Line(runner.url)
    line.lose = "answer"
    cycle = await dispatcher(ramp, line).tick()
    return cycle, dict(await ramp.entry(id)), id


async def test_what_was_taken_is_not_queued_again_when_only_the_answer_was_lost(ramp, runner):
    cycle, entry, id = await lost_answer(ramp, runner)  # noqa: A001  the row's own word
    assert (cycle.submitted, cycle.failed_submits) == (1, 0)
    assert (entry["state"], entry["submits"], (await latest(ramp, id))["state"]) == ("dispatched", 0, "in_progress")
    assert ramp.told(SubmitFailed) == []
    runner.may_end.set()
    await reaches(ramp, id, "completed")


async def test_control_without_its_guard_work_that_runs_is_queued_again(unguarded, ramp, runner):
    cycle, entry, _ = await lost_answer(ramp, runner)
    assert (cycle.failed_submits, entry["state"]) == (1, "queued")


async def test_a_take_over_whose_answer_the_database_lost_is_looked_up_and_run(ramp, runner):
    async def break_once() -> None:
        failpoints.disarm()
        raise ConnectionError("gone")

    failpoints.arm("runner.taken", break_once)
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    cycle = await dispatcher(ramp, Line(runner.url)).tick()
    assert (cycle.failed_submits, (await ramp.entry(id))["state"]) == (0, "dispatched")
    await reaches(ramp, id, "completed")


async def test_a_full_runner_is_asked_again_and_no_attempt_is_used(ramp, runner):
    ids = await ramp.queue(5, train="far")
    await ramp.conn.execute("""UPDATE interlock.work_queue SET input = '{"wait": true}'""")
    one = dispatcher(ramp, Line(runner.url), max_dispatch_attempts=1)
    cycle = await one.tick()
    assert (cycle.submitted, cycle.failed_submits) == (2, 0)
    assert cycle.sleep <= timedelta(seconds=1)
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.execution") == 2
    runner.may_end.set()
    for id in ids[:2]:  # noqa: A001  the row's own word
        await reaches(ramp, id, "completed")

    async def all_taken() -> bool:
        await one.tick()
        return await ramp.conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE state = 'queued'") == 0

    await eventually(all_taken, what="room for the others")
    assert await ramp.conn.fetchval("SELECT sum(submits) FROM interlock.work_queue") == 0


async def test_a_runner_tells_those_who_wait_for_room_that_a_slot_is_free_and_wakes_nobody_else(ramp, runner):
    heard = []
    await ramp.conn.add_listener(channel_of("interlock"), lambda *notice: heard.append(notice[3].partition(":")[0]))
    await ramp.queue(train="far")
    await ramp.conn.execute("""UPDATE interlock.work_queue SET input = '{"wait": true}'""")
    await dispatcher(ramp, Line(runner.url)).tick()
    assert "room" not in heard
    runner.may_end.set()
    await eventually(lambda: "room" in heard)
    assert "work" not in heard


async def test_a_train_that_runs_as_often_as_it_may_keeps_no_other_from_free_slots(ramp, runner):
    narrow, [far] = await ramp.queue(3, train="narrow", priority=9), await ramp.queue(train="far")
    one = dispatcher(ramp, Line(runner.url), max_dispatch_attempts=1)
    cycle = await one.tick()
    assert (cycle.submitted, cycle.failed_submits) == (2, 0)
    await reaches(ramp, far, "completed")
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.execution WHERE train = 'narrow'") == 1
    runner.may_end.set()

    async def all_taken() -> bool:
        await one.tick()
        return await ramp.conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE state = 'queued'") == 0

    await eventually(all_taken, what="the turns of the others")
    await reaches(ramp, narrow[-1], "completed")
    assert await ramp.conn.fetchval("SELECT sum(submits) FROM interlock.work_queue") == 0


async def test_a_train_that_the_runner_does_not_know_yet_waits_for_one_that_does_uncounted(ramp, runner):
    """In a deploy those who submit may be newer than the runner."""
    [new], [far] = await ramp.queue(train="new", priority=9), await ramp.queue(train="far")
    route = Route(Line(runner.url), frozenset({"far", "new"}))
    one = ramp.dispatcher(remote=[route], server=lambda: OTHER_SERVER, hands=Hands([]), max_dispatch_attempts=1)
    cycle = await one.tick()
    assert (cycle.submitted, cycle.failed_submits) == (1, 0)
    await reaches(ramp, far, "completed")
    entry = await ramp.entry(new)
    assert (entry["state"], entry["submits"], await latest(ramp, new)) == ("queued", 0, None)


async def test_many_that_find_no_room_are_answered_at_once(ramp, runner):
    """Free slots are of no use to a train that runs as often as it may: nobody is to wait for them."""
    await ramp.queue(2, train="narrow")
    line = Line(runner.url)
    await dispatcher(ramp, line).tick()
    answers = await asyncio.gather(*(post(runner, some("narrow")) for _ in range(80)))
    assert {answer.status_code for answer in answers} == {429}


def posted_by(line: Line) -> bytes:
    sent = line.sent[-1]
    return encode(Posted(sent.execution_id, sent.train, sent.attempt, sent.token))


async def post(
    runner,
    body: bytes,
    *,
    secret: str = SECRET,
    age: int = 0,
    path: str = "/executions",
    method: str = "POST",
    **headers,
) -> httpx.Response:
    signed = {HEADER: signature(secret.encode(), body, int(time.time()) - age)}
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.request(method, runner.url + path, content=body, headers={**signed, **headers})


def some(train: str = "far") -> bytes:
    return encode(Posted(4711, train, 1, uuid4()))


ANSWERS = [
    (409, some(), {}),
    (409, some(), {"age": 290}),
    (401, some(), {"secret": "another"}),
    (401, some(), {HEADER: ""}),
    (401, some(), {HEADER: "t=1,v1=2"}),
    (401, some(), {"age": 301}),
    (401, some(), {"age": -310}),
    (404, some(), {"path": "/"}),
    (405, some(), {"method": "PUT"}),
    (400, b"[]", {}),
    (400, b"\xff", {}),
    (400, b'{"execution_id": "one"}', {}),
    (413, b"x" * 20_000, {}),
    (422, some("nothing"), {}),
]


async def test_every_message_has_its_answer(runner):
    for status, body, how in ANSWERS:
        answer = await post(runner, body, **how)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json"), (body, how)
        assert answer.json()["status"] == "failing"
        assert SECRET not in answer.text


async def test_a_body_without_an_end_or_a_length_is_refused(runner):
    port = int(runner.url.rpartition(":")[2])
    for head in (b"Transfer-Encoding: chunked", b"Content-Length: -1", b"Content-Length: 99999999999999999999"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /executions HTTP/1.1\r\n" + head + b"\r\n\r\n")
        assert (await reader.read()).split()[1] in (b"400", b"413")
        writer.close()


async def test_a_wrong_secret_is_a_failed_submit_that_says_so(ramp, runner):
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    wrong = Route(HttpSubmitter(runner.url, secret="wrong"), frozenset({"far"}))
    cycle = await ramp.dispatcher(remote=[wrong], server=lambda: OTHER_SERVER, hands=Hands([])).tick()
    row = await latest(ramp, id)
    assert (cycle.failed_submits, row["failure"]) == (1, "submit_failed")
    assert "HTTP 401" in row["error_message"]
    assert "wrong, or older" in row["error_message"]


async def test_a_runner_that_does_not_answer_is_a_failed_submit(ramp):
    silent = socket.create_server(("127.0.0.1", 0))
    port = silent.getsockname()[1]
    [id] = await ramp.queue(train="far")  # noqa: A001  the row's own word
    submitter = HttpSubmitter(f"http://127.0.0.1:{port}", secret="s", timeout=timedelta(seconds=0.2))
    route = Route(submitter, frozenset({"far"}))
    assert (await ramp.dispatcher(remote=[route], server=lambda: OTHER_SERVER, hands=Hands([])).tick()).failed_submits
    assert "0.2 s" in (await latest(ramp, id))["error_message"]
    silent.close()


async def test_what_is_handed_back_waits_in_its_place_for_another_runner_and_nothing_is_counted(ramp, migrated):
    app = Interlock(
        migrated, runner_secret=SECRET, **{**SHORT_LEASES, "shutdown_timeout": timedelta(seconds=0.1)}
    )  # fmt: skip
    listening, began = [], asyncio.Event()

    @app.train
    async def far() -> None:
        began.set()
        await asyncio.sleep(60)

    app.events.subscribe(listening.append, (RunnerListening,))
    [id] = await ramp.queue(train="far", priority=9)  # noqa: A001  the row's own word
    before = await ramp.entry(id)
    async with app.running(runner="127.0.0.1:0"):
        await dispatcher(ramp, Line(f"http://127.0.0.1:{listening[0].port}")).tick()
        await asyncio.wait_for(began.wait(), 30)
    [after] = await ramp.conn.fetch("SELECT * FROM interlock.work_queue WHERE state = 'queued'")
    assert (after["created_at"], after["priority"], after["ready"]) == (before["created_at"], 9, True)
    assert (after["attempt"], after["crashes"], after["submits"], after["first_entry_id"]) == (1, 0, 0, id)
    assert await ramp.conn.fetchval("SELECT count(*) FROM interlock.background_job") == 0
    assert (await latest(ramp, id))["failure"] == "worker_lost"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"runner": "127.0.0.1:0"}, InvalidSetting),
        ({"runner": "example.com:80"}, InvalidOption),
        ({"runner": "127.0.0.1:0", "roles": ["worker"]}, InvalidOption),
        ({"roles": ["runner"]}, InvalidOption),
    ],
)
async def test_a_runner_that_could_not_be_one_is_refused_before_anything_is_opened(wanted, error):
    app = Interlock("postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(error):
        async with app.running(**wanted):
            pass


def test_the_secret_is_shown_nowhere():
    app = Interlock("postgresql://nobody@127.0.0.1:1/nothing", runner_secret=SECRET)
    assert SECRET not in repr(app.settings)
    assert SECRET not in repr(HttpSubmitter("https://runner", secret=SECRET))
    assert SECRET not in str(vars(HttpSubmitter("https://runner", secret=SECRET))["name"])
