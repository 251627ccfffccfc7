"""How one log record looks: a line for people, or a line of JSON for machines.

Both name the execution that a record belongs to, and neither fails because of what somebody attached to a record.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from interlock.observe.redact import redacted, without_password

EXECUTION_FIELDS = ("execution_id", "train", "manifest", "attempt")

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "event", *EXECUTION_FIELDS}
_COLOURS = {
    logging.DEBUG: "2",
    logging.INFO: "36",
    logging.WARNING: "33",
    logging.ERROR: "31",
    logging.CRITICAL: "1;31",
}


class RecordFormat(logging.Formatter):
    """What both formats share."""

    def formatException(self, ei: Any) -> str:  # noqa: N802  the name is the standard library's
        return without_password(super().formatException(ei))

    def trouble(self, record: logging.LogRecord) -> str | None:
        """The traceback of the record, if there is one."""
        if record.exc_info and record.exc_info[0] is not None:
            return self.formatException(record.exc_info)
        return record.exc_text or None


class JsonFormat(RecordFormat):
    """One JSON object per line; the four execution fields are always there, null outside of a train."""

    def format(self, record: logging.LogRecord) -> str:
        line = self._frame(record)
        if data := extras(record):
            line["data"] = data
        if trouble := self.trouble(record):
            line["exception"] = trouble
        if record.stack_info:
            line["stack"] = record.stack_info
        return dumps(line)

    def _frame(self, record: logging.LogRecord) -> dict[str, Any]:
        execution_id, train, manifest, attempt = (getattr(record, name, None) for name in EXECUTION_FIELDS)
        line = {"at": moment(record), "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        if (event := getattr(record, "event", None)) is not None:
            line["event"] = event
        ids = None if execution_id is None else str(execution_id)
        return line | {"execution_id": ids, "train": train, "manifest": manifest, "attempt": attempt}


class HumanFormat(RecordFormat):
    """One line to read: when, how bad, who says it, what, and in which execution."""

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        stamp = moment(record).replace("T", " ")
        parts = [stamp, self._level(record), f"{record.name}:", record.getMessage(), *self._tail(record)]
        return "\n".join(filter(None, [" ".join(parts), self.trouble(record), record.stack_info]))

    def _level(self, record: logging.LogRecord) -> str:
        padded = f"{record.levelname:<7}"
        return f"\033[{_COLOURS.get(record.levelno, '0')}m{padded}\033[0m" if self._colour else padded

    def _tail(self, record: logging.LogRecord) -> list[str]:
        execution = {name: getattr(record, name, None) for name in EXECUTION_FIELDS}
        # The sentence of an event says its data already.
        attached = {} if hasattr(record, "event_data") else extras(record)
        pairs = [f"{k}={_text(v)}" for k, v in (execution | attached).items() if k in attached or v is not None]
        return [f"[{' '.join(pairs)}]"] if pairs else []


def moment(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def extras(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller attached with `extra=`; the fields of an event come in one piece."""
    attached = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    data = attached.get("event_data")
    found: dict[str, Any] = redacted(data if isinstance(data, dict) else attached)
    return found


def dumps(line: dict[str, Any]) -> str:
    """JSON of whatever was attached; a value that cannot be written is replaced by its text, alone."""
    try:
        return json.dumps(line, default=plain, allow_nan=False)
    except Exception:  # noqa: BLE001  any object may be attached, and may raise anything when it is looked at
        return json.dumps({str(key): _writable(value) for key, value in line.items()})


def plain(value: object) -> object:
    """A value that JSON does not know, as one that it knows."""
    match value:
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case BaseException():
            return without_password(f"{type(value).__name__}: {value}")
        case Enum():
            return value.value
        case set() | frozenset():
            return [_text(member) for member in value]
        case _:
            return _text(value)


def _writable(value: object) -> object:
    if isinstance(value, dict):
        return {_text(key): _writable_leaf(member) for key, member in value.items()}
    return _writable_leaf(value)


def _writable_leaf(value: object) -> object:
    try:
        return json.loads(json.dumps(value, default=plain, allow_nan=False))
    except Exception:  # noqa: BLE001  see dumps
        return _text(value)


def _text(value: object) -> str:
    try:
        return without_password(str(value))
    except Exception:  # noqa: BLE001  see dumps
        return f"<unprintable {type(value).__name__}>"
