"""Trains with process=True: they run in children, and nothing they do harms the worker or its other jobs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from interlock.model.execution import Claim
from interlock.worker.job import Job
from interlock.worker.processes import Processes
from tests.harness.waiting import eventually
from tests.integration.worker import process_trains


@pytest.fixture
async def started(works):
    for train in process_trains.app.trains:
        works.app.trains._add(train)
    return await works.start()


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_a_plain_function_runs_in_a_child_that_is_kept_for_the_next(works, yard, started):
    outputs = []
    for n in (3, 4):
        row = await works.ended(await yard.dispatch("square", {"n": n}), 60)
        outputs.append(json.loads(row["output"]))
    assert [output["square"] for output in outputs] == [9, 16]
    assert outputs[0]["pid"] == outputs[1]["pid"] != os.getpid()


async def test_a_child_that_crashes_fails_its_own_run_and_no_other(works, yard, started):
    crashed, others = await yard.dispatch("crash"), [await yard.dispatch("square", {"n": n}) for n in range(3)]
    row = await works.ended(crashed, 60)
    assert (row["failure"], row["error_type"]) == ("error", "interlock.errors.ChildDied")
    assert "signal 9" in row["error_message"]
    assert {(await works.ended(other, 60))["state"] for other in others} == {"completed"}


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


async def test_a_cancel_stops_a_child_that_never_asks(works, yard, started, tmp_path):
    file = tmp_path / "pid"
    execution = await yard.dispatch("spin", {"path": str(file)})
    await eventually(lambda: file.exists() and file.read_text(), 60, "the child")
    await works.app.acancel_execution(execution)
    assert (await works.ended(execution))["state"] == "cancelled"
    assert not is_alive(int(file.read_text()))


async def test_a_timeout_stops_a_child_that_never_asks(works, yard, started, tmp_path):
    file = tmp_path / "pid"
    execution = await yard.dispatch("spin", {"path": str(file)}, limit=3)
    assert (await works.ended(execution, 60))["failure"] == "timeout"
    assert not file.exists() or not is_alive(int(file.read_text()))


async def parent(path: str) -> None:
    """A process with a child that spins for ever."""
    claim = Claim(1, "spin", json.dumps({"path": path}), 1, 1, None, datetime.now(UTC), None, None, None, keyed=False)
    train = process_trains.app.trains.get("spin")
    await Processes().run(Job(claim, train, token=uuid4(), server=uuid4(), services=None))


async def test_a_child_dies_with_its_parent_whatever_it_is_doing(fleet, tmp_path):
    file = tmp_path / "pid"
    process = fleet.start(f"{__name__}:parent", str(file))
    await eventually(lambda: file.exists() and file.read_text(), 60, "the child")
    child = int(file.read_text())
    os.kill(process.pid, signal.SIGKILL)
    await eventually(lambda: not _runs(child), 60, "the end of the child")
    await asyncio.to_thread(process.kill)


def _runs(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has collected yet."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
