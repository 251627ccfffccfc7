"""Every kind of event can be emitted, said and written, and none tells a secret."""

from __future__ import annotations

import dataclasses
import json
import logging
import typing
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from interlock.observe import events
from interlock.observe.context import ExecutionContext
from interlock.observe.events import Event, ExecutionSettled, LoopFailed
from interlock.observe.formats import JsonFormat
from interlock.observe.logs import LogSubscriber
from interlock.observe.redact import without_password

ABSTRACT = {
    "Event",
    "RepeatedFailure",
    "ExecutionEvent",
    "TimerEvent",
    "LockEvent",
    "ManifestEvent",
    "MessageEvent",
    "OutboxEvent",
    "ServerEvent",
    "StoreEvent",
    "SupervisorEvent",
}
KINDS = [getattr(events, name) for name in events.__all__ if name not in ABSTRACT]
SAMPLES = {
    int: 3,
    str: "x",
    bool: True,
    timedelta: timedelta(seconds=1.5),
    datetime: datetime(2030, 1, 1, tzinfo=UTC),
    UUID: UUID(int=1),
    BaseException: OSError("x"),
}


def sample(kind) -> Event:
    hints = typing.get_type_hints(kind)
    return kind(**{field.name: value_for(hints[field.name]) for field in dataclasses.fields(kind)})


def value_for(hint):
    options = typing.get_args(hint) or (hint,)
    return SAMPLES[next(option for option in options if option is not type(None))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_says_a_sentence_and_has_a_subject(kind):
    event = sample(kind)
    assert event.message()
    assert "{" not in event.message()
    assert kind.subject != Event.subject
    assert event.severity() in {logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_can_be_written_as_json(kind, caplog):
    caplog.set_level(logging.DEBUG)
    event = sample(kind)
    # The third failure of a kind is not written, so ask for the first.
    event = dataclasses.replace(event, consecutive=1) if hasattr(event, "consecutive") else event
    LogSubscriber()(event)
    [record] = caplog.records
    line = json.loads(JsonFormat().format(record))
    assert line["event"] == kind.__name__
    assert line["logger"] == f"interlock.{kind.subject}"
    assert set(line.get("data", {})) == {field.name for field in dataclasses.fields(kind)}


def test_every_event_is_part_of_the_package_surface():
    def below(kind):
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    ours = {kind.__name__ for kind in below(Event) if kind.__module__.startswith("interlock.")}
    assert ours == set(events.__all__)


def test_an_event_names_an_execution_by_the_fields_of_the_context():
    names = {field.name for field in dataclasses.fields(ExecutionContext)}
    event = sample(ExecutionSettled)
    assert set(event.about()) == names


@pytest.mark.parametrize(("outcome", "level"), [("completed", logging.INFO), ("failed", logging.WARNING)])
def test_a_failed_execution_is_a_warning(outcome, level):
    assert dataclasses.replace(sample(ExecutionSettled), outcome=outcome).severity() == level


def test_a_settled_execution_says_why_and_when_only_if_there_is_a_why_and_a_when():
    done = ExecutionSettled(execution_id=1, train="greet", outcome="completed", took=timedelta(seconds=2))
    assert done.message() == "execution 1 of greet completed in 2 s"
    failed = dataclasses.replace(done, outcome="failed", error=ValueError("no"), retry_in=timedelta(seconds=300))
    assert failed.message() == "execution 1 of greet failed in 2 s: ValueError: no; next attempt in 300 s"


def test_data_in_braces_is_data():
    assert "{error.__class__}" in LoopFailed(loop="{error.__class__}", error=OSError(), retry_in=timedelta(0)).message()


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{SECRET}@db:5432/app",
        f"postgresql://ada:{SECRET}@{SECRET}@db/app",
        f"postgres://:{SECRET}@db",
        f"host=db password={SECRET} user=ada",
        f"host=db password = '{SECRET} {SECRET}' user=ada",
        f"postgresql://db/app?user=ada&password={SECRET}&sslmode=require",
    ],
)
def test_a_password_never_shows(text):
    assert SECRET not in without_password(text)
    assert "db" in without_password(text)
    assert SECRET not in LoopFailed(loop="x", error=OSError(text), retry_in=timedelta(0)).message()


def test_text_without_a_password_is_left_alone():
    for text in ("postgresql://db:5432/app", "see https://example.org/a", "the password is missing", "a@b"):
        assert without_password(text) == text


@pytest.mark.parametrize("raised", [RuntimeError, SystemExit])
def test_an_error_whose_text_raises_is_said_all_the_same(raised):
    class Shy(Exception):
        def __str__(self) -> str:
            raise raised

    event = LoopFailed(loop="x", error=Shy(), retry_in=timedelta(0))
    assert f"Shy: its text cannot be shown: {raised.__name__}" in event.message()
