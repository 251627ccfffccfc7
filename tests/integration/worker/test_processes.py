"""Trains with process=True: they run in children, and nothing they do harms the worker or its other jobs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from interlock.model.execution import Claim
from interlock.observe.logs import configure_logging
from interlock.worker.job import Job
from interlock.worker.processes import Processes
from tests.harness.waiting import eventually
from tests.integration.worker import process_trains


@pytest.fixture
async def started(works):
    for train in process_trains.app.trains:
        works.app.trains._add(train)
    return await works.start()


@pytest.fixture
def logging_as_json():
    """As `interlock run` sets it up; it is undone afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging(sys.stderr, "INFO", "json")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


async def test_a_plain_function_runs_in_a_child_that_is_kept_for_the_next(works, yard, started):
    outputs = []
    for n in (3, 4):
        row = await works.ended(await yard.dispatch("square", {"n": n}), 60)
        outputs.append(json.loads(row["output"]))
    assert [output["square"] for output in outputs] == [9, 16]
    assert outputs[0]["pid"] == outputs[1]["pid"] != os.getpid()


async def test_a_train_in_a_variable_of_its_own_is_found_by_its_function(works, yard, started):
    row = await works.ended(await yard.dispatch("halve", {"n": 42}), 60)
    assert (row["state"], row["output"], row["error_message"]) == ("completed", "21", None)


async def test_a_train_of_a_module_that_python_started_by_its_name_is_found_by_that():
    started = [sys.executable, "-m", "tests.integration.worker.started_by_name"]
    done = await asyncio.to_thread(subprocess.run, started, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("3\n", "")


async def test_a_child_that_crashes_fails_its_own_run_and_no_other(works, yard, started):
    crashed, others = await yard.dispatch("crash"), [await yard.dispatch("square", {"n": n}) for n in range(3)]
    row = await works.ended(crashed, 60)
    assert (row["failure"], row["error_type"]) == ("error", "interlock.errors.ChildDied")
    assert "signal 9" in row["error_message"]
    assert {(await works.ended(other, 60))["state"] for other in others} == {"completed"}


async def test_what_a_train_logs_in_its_child_is_written_as_here_and_names_its_execution(
    works, yard, started, logging_as_json, capfd
):
    execution = await yard.dispatch("log")
    await works.ended(execution, 60)
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines() if "said in a child" in line]
    assert [(one["level"], one["execution_id"], one["train"]) for one in said] == [("INFO", str(execution), "log")]


@pytest.mark.parametrize(
    ("how", "state", "failure", "kind"),
    [
        ("key", "failed", "error", "KeyError"),
        ("exit", "failed", "error", "SystemExit"),
        ("nul", "failed", "invalid_output", "interlock.errors.InvalidOutput"),
        ("snooze", "snoozed", None, "interlock.model.outcome.Snooze"),
    ],
)
async def test_what_a_train_raises_in_its_child_is_named_as_if_it_ran_here(
    works, yard, started, how, state, failure, kind
):
    row = await works.ended(await yard.dispatch("fail", {"how": how}), 60)
    assert (row["state"], row["failure"], row["error_type"]) == (state, failure, kind)


async def those_of(file: Path) -> list[int]:
    """The child and whom it started."""
    pids = await eventually(lambda: file.exists() and file.read_text(), 60, "the child")
    return [int(pid) for pid in pids.split()]


async def gone(pids: list[int]) -> None:
    await eventually(lambda: not any(map(_runs, pids)), 60, f"the end of {pids}")


async def test_a_cancel_stops_a_child_that_never_asks_and_what_it_started(works, yard, started, tmp_path):
    execution = await yard.dispatch("spin", {"path": str(tmp_path / "pids")})
    pids = await those_of(tmp_path / "pids")
    await works.app.acancel_execution(execution)
    assert (await works.ended(execution))["state"] == "cancelled"
    await gone(pids)


async def test_a_timeout_stops_a_child_that_never_asks(works, yard, started, tmp_path):
    file = tmp_path / "pids"
    execution = await yard.dispatch("spin", {"path": str(file)}, limit=3)
    assert (await works.ended(execution, 60))["failure"] == "timeout"
    if file.exists():
        await gone(await those_of(file))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_a_signal_to_all_processes_of_a_service_is_left_to_the_parent(works, yard, started, tmp_path, number):
    told = tmp_path / "told"
    execution = await yard.dispatch("until_told", {"path": str(tmp_path / "pid"), "told": str(told)})
    [child] = await those_of(tmp_path / "pid")
    os.kill(child, number)
    told.touch()
    row = await works.ended(execution)
    assert (row["state"], row["output"]) == ("completed", str(child))


async def test_what_a_child_starts_is_ended_by_signals_as_ever(works, yard, started):
    row = await works.ended(await yard.dispatch("end_what_it_started"))
    assert json.loads(row["output"]) == [-signal.SIGTERM, -signal.SIGTERM]


async def test_a_train_in_a_child_finds_nothing_to_read(works, yard, started):
    row = await works.ended(await yard.dispatch("read_all", limit=20))
    assert row["output"] == '["", ""]'


async def test_a_child_that_was_killed_between_two_jobs_is_not_the_failure_of_the_next(works, yard, started):
    first = json.loads((await works.ended(await yard.dispatch("square", {"n": 1})))["output"])["pid"]
    os.kill(first, signal.SIGKILL)
    await gone([first])
    row = await works.ended(await yard.dispatch("square", {"n": 2}))
    assert (row["state"], row["crashes"]) == ("completed", 0)


async def test_a_child_that_died_unheard_because_a_body_blocked_the_event_loop_gets_no_job():
    processes = Processes()
    first = json.loads(await processes.run(job_of("square", n=1)))["pid"]
    os.kill(first, signal.SIGKILL)
    with suppress(ChildProcessError):  # collected already
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222  the event loop is to hear of nothing
    assert json.loads(await processes.run(job_of("square", n=2)))["pid"] != first
    await processes.close()


async def test_a_crash_is_noticed_although_a_process_that_the_child_forked_lives_on(works, yard, started):
    row = await works.ended(await yard.dispatch("crash_before_what_it_forked"))
    assert (row["failure"], row["error_type"]) == ("error", "interlock.errors.ChildDied")


async def test_a_file_that_what_it_forked_opened_is_open_in_what_that_forks(works, yard, started, tmp_path):
    path = tmp_path / "written"
    row = await works.ended(await yard.dispatch("write_from_what_the_forked_forked", {"path": str(path)}), 60)
    assert (row["output"], path.read_text()) == ("0", "xx")


def job_of(train: str, **arguments: object) -> Job:
    claim = Claim(1, train, json.dumps(arguments), 1, 1, None, datetime.now(UTC), None, None, None, keyed=False)
    return Job(claim, process_trains.app.trains.get(train), token=uuid4(), server=uuid4(), services=None)


async def parent(path: str) -> None:
    """A process with a child that spins for ever."""
    await Processes().run(job_of("spin", path=path))


async def test_a_child_dies_with_its_parent_whatever_it_is_doing(fleet, tmp_path):
    process = fleet.start(f"{__name__}:parent", str(tmp_path / "pids"))
    pids = await those_of(tmp_path / "pids")
    os.kill(process.pid, signal.SIGKILL)
    await gone(pids)
    await asyncio.to_thread(process.kill)


def _runs(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has collected yet."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
