"""The subscriber that writes logs, and the logging setup of the command line.

Importing this changes nothing about logging. An application with a logging setup of its own adds `ExecutionFields()`
as a filter to its handlers, and its own log lines inside a train name their execution as well. (With structlog, a
processor that merges `interlock.observe.context.current()` does the same.)
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from interlock.errors import InterlockError, InvalidOption, JunctionFailed
from interlock.model.failure import RaisedInChildError
from interlock.model.frames import from_the_users_code
from interlock.observe.context import current
from interlock.observe.events.base import RepeatedFailure
from interlock.observe.formats import EXECUTION_FIELDS, HumanFormat, JsonFormat
from interlock.observe.redact import redacted, without_password

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from interlock.observe.events.base import Event

_Trouble: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None]"
LogFormat = Literal["auto", "human", "json"]


class LogSubscriber:
    """Writes one record per event, on the logger `interlock.<subject>`."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("interlock")

    def __call__(self, event: Event) -> None:
        logger, level = self._logger.getChild(event.subject), event.severity()
        if logger.isEnabledFor(level) and _worth_a_record(event):
            extra = {"event": type(event).__name__, "event_data": _data(event), **event.about()}
            logger.log(level, "%s", without_password(event.message()), extra=extra, exc_info=_unexpected(event))


class ExecutionFields(logging.Filter):
    """Puts execution_id, train, manifest and attempt on every record: those of the running train, wherever it logs.

    An event about an execution names that one, because many end in one batch, which runs in the context of the first.
    Inside a train any other record names the train's own; outside, what the record itself says, or None.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        context = None if _names_its_own(record) else current()
        for name in EXECUTION_FIELDS:
            setattr(record, name, getattr(context, name) if context else getattr(record, name, None))
        return True


def _names_its_own(record: logging.LogRecord) -> bool:
    return hasattr(record, "event_data") and getattr(record, "execution_id", None) is not None


class _InterlockHandler(logging.StreamHandler[TextIO]):
    """The handler of `configure_logging`, so that a second call finds and replaces it."""


def configure_logging(
    stream: TextIO | None = None,
    level: int | str = logging.INFO,
    format: LogFormat = "auto",  # noqa: A002  as the flag
) -> logging.Handler:
    """Write all logs of this process to the stream (standard error): for people on a terminal, as JSON elsewhere."""
    stream = stream or sys.stderr
    handler = _InterlockHandler(stream)
    handler.setFormatter(_formatter(stream, format))
    handler.addFilter(ExecutionFields())
    root = logging.getLogger()
    _remove(root, (old for old in root.handlers if isinstance(old, _InterlockHandler)))
    root.addHandler(handler)
    root.setLevel(level)
    # A line per request says nothing that the events of submits and deliveries do not.
    logging.getLogger("httpx").setLevel(logging.WARNING if root.level > logging.DEBUG else logging.NOTSET)
    return handler


def logging_as_here() -> list[str]:
    """Level and format of `configure_logging`, for a child process of this one; nothing where others set logging up."""
    root = logging.getLogger()
    formatters = [handler.formatter for handler in root.handlers if isinstance(handler, _InterlockHandler)]
    return [str(root.level), "json" if isinstance(formatters[0], JsonFormat) else "human"] if formatters else []


def _remove(root: logging.Logger, handlers: Iterable[logging.Handler]) -> None:
    for handler in list(handlers):
        root.removeHandler(handler)


def _formatter(stream: TextIO, format: str) -> logging.Formatter:  # noqa: A002  as the flag
    terminal = stream.isatty()
    match format:
        case "human":
            return HumanFormat(colour=terminal and _colour_welcome())
        case "json":
            return JsonFormat()
        case "auto":
            return HumanFormat(colour=_colour_welcome()) if terminal else JsonFormat()
        case _:
            raise InvalidOption(option="format", found=format, expected="auto, human or json")


def _colour_welcome() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _worth_a_record(event: Event) -> bool:
    """The first failure of a kind, then the 10th, the 100th, …: an outage must not flood the log."""
    if not isinstance(event, RepeatedFailure):
        return True
    count = event.consecutive
    while count % 10 == 0 and count:
        count //= 10
    return count == 1


def _data(event: Event) -> dict[str, Any]:
    # Ids are written as strings: a reader in JavaScript would round a large one.
    return {
        name: str(value) if name.endswith("_id") and value is not None else redacted(value)
        for name, value in vars(event).items()
    }


def _unexpected(event: Event) -> _Trouble | None:
    """An error whose traceback helps; an outage and an error of our own say all in their text.

    A function of the user's that does not find its file is no outage. What failed a chain is what its junction raised.
    """
    error = getattr(event, "error", None)
    if isinstance(error, JunctionFailed):
        error = error.__cause__ or error
    if not isinstance(error, BaseException) or isinstance(error, InterlockError):
        return None
    if isinstance(error, OSError) and not event.raised_by_users:
        return None
    # The traceback of a child is a text, in the notes of the error; the frames of this process would say nothing.
    trace = None if isinstance(error, RaisedInChildError) else error.__traceback__
    return type(error), error, from_the_users_code(trace) if event.raised_by_users else trace
