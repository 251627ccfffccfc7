"""Every record names its execution, whoever writes it and from where, and no record breaks the log."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from interlock.errors import InvalidOption, JunctionFailed
from interlock.model.failure import RaisedInChildError, traceback_of
from interlock.model.frames import OURS
from interlock.observe.bus import Bus
from interlock.observe.context import ExecutionContext, bound, current
from interlock.observe.events import (
    ExecutionSettled,
    LoopFailed,
    LoopRecovered,
    NoticeFailed,
    PollingFallback,
    ServerLost,
    WorkClaimed,
    WorkEnqueued,
)
from interlock.observe.logs import LogSubscriber, configure_logging

CONTEXT = ExecutionContext(execution_id=42, train="greet", manifest="daily", attempt=2)
FIELDS = {"execution_id": "42", "train": "greet", "manifest": "daily", "attempt": 2}
NOBODY = dict.fromkeys(FIELDS)

user_log = logging.getLogger("shop.orders")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def logging_as_before():
    root = logging.getLogger()
    client = logging.getLogger("httpx")
    handlers, level, of_client = root.handlers[:], root.level, client.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    client.setLevel(of_client)


@pytest.fixture
def written():
    """Log as JSON; call it for the lines so far."""
    stream = io.StringIO()
    configure_logging(stream, logging.DEBUG)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.fixture
def emit():
    bus = Bus()
    bus.subscribe(LogSubscriber())
    return bus.emit


def execution_of(line):
    return {name: line[name] for name in FIELDS}


def test_a_users_own_line_inside_a_train_names_its_execution(written):
    user_log.info("before")
    with bound(CONTEXT):
        user_log.info("paid %s", 7, extra={"order": 7})
    user_log.info("after")
    before, inside, after = written()
    assert execution_of(inside) == FIELDS
    assert (inside["message"], inside["logger"], inside["data"]) == ("paid 7", "shop.orders", {"order": 7})
    assert execution_of(before) == execution_of(after) == NOBODY


async def test_lines_from_tasks_and_carried_threads_name_their_own_execution(written):
    async def train(number):
        with bound(ExecutionContext(execution_id=number, train=f"t{number}")):
            await asyncio.sleep(0)
            user_log.info("in the task of %d", number)
            await asyncio.to_thread(user_log.info, "in a thread of %d", number)
            await asyncio.create_task(child(number))

    async def child(number):
        user_log.info("in a child task of %d", number)

    await asyncio.gather(*(train(number) for number in range(20)))
    lines = [line for line in written() if line["logger"] == "shop.orders"]
    assert len(lines) == 60
    assert all(line["message"].endswith(f" of {line['execution_id']}") for line in lines)


def test_a_thread_that_carries_no_context_belongs_to_nobody(written):
    with bound(CONTEXT):
        thread = threading.Thread(target=user_log.info, args=("alone",))
        thread.start()
        thread.join()
    assert execution_of(written()[0]) == NOBODY


def test_nested_contexts_end_in_order():
    inner = ExecutionContext(execution_id=43, train="inner")
    with bound(CONTEXT):
        with bound(inner):
            assert current() == inner
        assert current() == CONTEXT
    assert current() is None


def test_a_users_field_of_the_same_name_does_not_hide_the_execution(written):
    with bound(CONTEXT):
        user_log.info("departs", extra={"train": "ICE 5"})
    assert execution_of(written()[0]) == FIELDS


def test_an_event_about_an_execution_names_it_outside_of_the_train_too(written, emit):
    emit(WorkClaimed(execution_id=2**60, train="greet", manifest=None, attempt=3))
    [line] = written()
    assert execution_of(line) == {"execution_id": str(2**60), "train": "greet", "manifest": None, "attempt": 3}
    assert line["data"]["execution_id"] == str(2**60)


def test_an_event_about_another_execution_names_that_one(written, emit):
    with bound(CONTEXT):
        emit(WorkClaimed(execution_id=7, train="load", manifest=None, attempt=1))
    [line] = written()
    assert execution_of(line) == {"execution_id": "7", "train": "load", "manifest": None, "attempt": 1}


def test_an_event_inside_a_train_names_the_train_that_caused_it(written, emit):
    with bound(CONTEXT):
        emit(WorkEnqueued(entry_id=9, train="other", kind="adhoc"))
    [line] = written()
    assert execution_of(line) == FIELDS
    assert line["data"]["train"] == "other"


def test_a_field_named_like_one_of_a_log_record_is_kept(written, emit):
    emit(ServerLost(server=UUID(int=1), name="web-1", by=UUID(int=2)))
    [line] = written()
    assert line["data"] == {"server": str(UUID(int=1)), "name": "web-1", "by": str(UUID(int=2))}
    assert (line["logger"], line["level"], line["event"]) == ("interlock.server", "WARNING", "ServerLost")
    moment = datetime.fromisoformat(line["at"])
    assert line["at"].endswith("Z")
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)


def fail(consecutive, error=OSError("refused")):  # noqa: B008  never changed
    return LoopFailed(loop="worker", error=error, retry_in=timedelta(seconds=2), consecutive=consecutive)


def test_an_outage_does_not_flood_the_log(written, emit):
    for count in range(1, 1201):
        emit(fail(count))
    emit(LoopRecovered(loop="worker", failures=1200, after=timedelta(minutes=40)))
    assert [line["data"].get("consecutive") for line in written()] == [1, 10, 100, 1000, None]


def test_an_unexpected_error_comes_with_its_traceback_and_an_outage_without(written, emit):
    try:
        [].pop()
    except IndexError as error:
        emit(fail(1, error))
    emit(fail(1))
    bug, outage = written()
    assert "Traceback" in bug["exception"]
    assert "pop from empty list" in bug["exception"]
    assert "exception" not in outage
    assert "OSError: refused" in outage["message"]


def through_us(body):
    """What it raises, called by code that lies in our package."""
    names = {}
    exec(compile("def lead(body): body()", OURS + "worker/lead.py", "exec"), names)
    try:
        names["lead"](body)
    except Exception as error:  # noqa: BLE001  it is what was asked for
        return error.with_traceback(error.__traceback__.tb_next)


def read_a_file():
    raise FileNotFoundError("orders.csv")


def failed_by(error):
    return ExecutionSettled(
        execution_id=1, train="t", manifest=None, attempt=1, outcome="failed", took=timedelta(0), error=error
    )


def test_an_error_of_a_train_shows_its_traceback_from_the_code_of_the_user_on(written, emit):
    emit(failed_by(through_us(read_a_file)))
    emit(fail(1, through_us("not to be called")))
    users, ours = written()
    assert "in read_a_file" in users["exception"]
    assert "lead.py" not in users["exception"]
    assert "lead.py" in ours["exception"]


def test_an_error_of_a_junction_shows_the_traceback_of_what_the_junction_raised(written, emit):
    def chain():
        try:
            read_a_file()
        except FileNotFoundError as error:
            raise JunctionFailed(train="t", junction="read") from error

    emit(failed_by(through_us(chain)))
    [line] = written()
    assert "JunctionFailed: train 't' failed in junction 'read'" in line["message"]
    assert line["exception"].splitlines()[-1] == "FileNotFoundError: orders.csv"
    assert "in read_a_file" in line["exception"]


def test_an_error_of_a_child_process_shows_the_traceback_of_the_child(written, emit):
    text = traceback_of(through_us(read_a_file))

    def ask():
        raise RaisedInChildError(failure="error", kind="FileNotFoundError", message="orders.csv", traceback=text)

    emit(failed_by(through_us(ask)))
    [line] = written()
    assert text.strip() in line["exception"]
    assert "in ask" not in line["exception"]


def test_a_password_in_a_traceback_does_not_show(written, emit):
    try:
        int("postgresql://ada:s3cr3t@db/app")
    except ValueError as error:
        emit(fail(1, error))
    [line] = written()
    assert "postgresql://ada:***@db/app" in line["exception"]
    assert "s3cr3t" not in json.dumps(line)


class Hostile:
    def __str__(self):
        raise RuntimeError

    __repr__ = __str__


def test_nothing_that_is_attached_to_a_record_breaks_the_log(written, capsys):
    circle = []
    circle.append(circle)
    hostile = [
        Hostile(),
        circle,
        {(1, 2): 3},
        math.nan,
        b"\xff",
        {1, 2},
        object,
        lambda: None,
        "\ud800",
        ValueError("x"),
    ]
    for thing in hostile:
        with bound(CONTEXT):
            user_log.info("here", extra={"thing": thing, "fine": [1, {"a": None}]})
    lines = written()
    assert len(lines) == len(hostile)
    assert all(execution_of(line) == FIELDS and line["data"]["fine"] == [1, {"a": None}] for line in lines)
    assert all("thing" in line["data"] for line in lines)
    assert capsys.readouterr().err == ""


def test_every_line_of_the_log_is_json_that_others_can_read(written):
    user_log.info("a\nb", extra={"x": math.inf, "when": datetime(2030, 1, 1, tzinfo=UTC), "took": timedelta(seconds=2)})

    def refuse(constant):
        raise AssertionError(constant)

    [line] = written()
    assert json.loads(json.dumps(line), parse_constant=refuse)["message"] == "a\nb"
    assert line["data"] == {"x": "inf", "when": "2030-01-01T00:00:00Z", "took": 2.0}


def test_people_get_one_readable_line(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    configure_logging(stream)
    with bound(CONTEXT):
        user_log.warning("paid", extra={"order": 7})
    user_log.info("idle")
    inside, outside = stream.getvalue().splitlines()
    assert inside.endswith("WARNING shop.orders: paid [execution_id=42 train=greet manifest=daily attempt=2 order=7]")
    assert outside.endswith("INFO    shop.orders: idle")


def test_people_see_the_traceback(monkeypatch):
    stream = io.StringIO()
    configure_logging(stream, format="human")
    try:
        {}["gone"]
    except KeyError:
        user_log.exception("failed")
    assert "KeyError: 'gone'" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "format", "no_colour", "human", "coloured"),
    [
        (Terminal, "auto", "", True, True),
        (Terminal, "auto", "1", True, False),
        (Terminal, "json", "", False, False),
        (Terminal, "human", "", True, True),
        (io.StringIO, "auto", "", False, False),
        (io.StringIO, "human", "", True, False),
    ],
)
def test_the_format_follows_the_stream_unless_it_is_chosen(monkeypatch, stream, format, no_colour, human, coloured):  # noqa: A002
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setenv("TERM", "xterm")
    stream = stream()
    configure_logging(stream, format=format)
    user_log.error("x")
    assert stream.getvalue().startswith("{") is not human
    assert ("\033[" in stream.getvalue()) is coloured


def test_configuring_twice_writes_once_and_leaves_other_handlers_alone():
    first, second, theirs = io.StringIO(), io.StringIO(), logging.NullHandler()
    logging.getLogger().addHandler(theirs)
    configure_logging(first)
    configure_logging(second)
    user_log.info("x")
    assert first.getvalue() == ""
    assert len(second.getvalue().splitlines()) == 1
    assert theirs in logging.getLogger().handlers


@pytest.mark.parametrize(("level", "lines"), [("INFO", 0), ("DEBUG", 1)])
def test_a_request_has_a_line_of_its_own_only_where_everything_has(level, lines):
    stream = io.StringIO()
    configure_logging(stream, level)
    logging.getLogger("httpx").info("HTTP Request: POST https://receiver.example")
    assert len(stream.getvalue().splitlines()) == lines


def test_an_unknown_format_is_refused():
    with pytest.raises(InvalidOption, match="auto, human or json"):
        configure_logging(io.StringIO(), format="xml")


def test_importing_changes_nothing_about_logging():
    script = """
import logging
factory, handlers = logging.getLogRecordFactory(), list(logging.getLogger().handlers)
import interlock.observe.logs, interlock.observe.events, interlock.observe.bus
assert logging.getLogRecordFactory() is factory
assert logging.getLogger().handlers == handlers == []
assert logging.getLogger().level == logging.WARNING
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30, env=os.environ)


SECRET = "postgresql://ada:hush-hush@db:5432/shop"


class Address:
    def __repr__(self):
        return SECRET


@pytest.mark.parametrize("format", ["json", "human"])
def test_no_password_is_written_whatever_field_of_an_event_holds_it(emit, format):  # noqa: A002  as the flag
    stream = io.StringIO()
    configure_logging(stream, logging.DEBUG, format)
    emit(PollingFallback(reason=f"no notice from {SECRET}"))
    emit(NoticeFailed(error=SECRET))
    emit(LoopFailed(loop=SECRET, error=OSError(SECRET), retry_in=timedelta(seconds=1)))
    assert stream.getvalue().count("ada:***@db:5432/shop") >= 3
    assert "hush" not in stream.getvalue()


@pytest.mark.parametrize("format", ["json", "human"])
@pytest.mark.parametrize("value", [SECRET, [SECRET], {"deep": (SECRET,)}, {SECRET}, Address(), [Address()]])
def test_no_password_is_written_that_somebody_attached_to_a_record(value, format):  # noqa: A002  as the flag
    stream = io.StringIO()
    configure_logging(stream, logging.DEBUG, format)
    user_log.info("connected", extra={"database": value})
    assert "ada:***@" in stream.getvalue()
    assert "hush" not in stream.getvalue()
