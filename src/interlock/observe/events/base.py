"""What every event has: a subject, a level, a sentence for people, and its data as fields."""

from __future__ import annotations

import logging
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any, ClassVar, dataclass_transform

from interlock.fields import WithFields
from interlock.observe.redact import without_password


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
class Event(WithFields):
    """Something that happened. `text` is its sentence, with the fields in braces."""

    subject: ClassVar[str] = "event"
    level: ClassVar[int] = logging.INFO
    text: ClassVar[str] = ""
    raised_by_users: ClassVar[bool] = False
    """Whether its `error`, if it has one, comes out of a function of the user's."""
    _is_frozen: ClassVar[bool] = True

    def severity(self) -> int:
        """The log level of this very event; most events have that of their class."""
        return self.level

    def message(self) -> str:
        return self.sentence().format_map({name: spoken(value) for name, value in vars(self).items()})

    def sentence(self) -> str:
        """The text of this very event, with the fields still in braces; most events have that of their class."""
        return self.text

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def about(self) -> dict[str, Any]:
        """Those of execution_id, train, manifest and attempt that this event is about."""
        return {}


class RepeatedFailure(Event):
    """A failure that may come back every second; `consecutive` counts its kind since the last success."""

    level: ClassVar[int] = logging.WARNING
    error: BaseException
    consecutive: int = 1


class ExecutionEvent(Event):
    """Something that happened to one execution."""

    execution_id: int
    train: str
    manifest: str | None = None
    attempt: int = 1

    def about(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("execution_id", "train", "manifest", "attempt")}


def spoken(value: object) -> object:
    """A field as a sentence says it."""
    match value:
        case timedelta():
            return f"{value.total_seconds():.3g} s"
        case BaseException():
            return without_password(f"{type(value).__name__}: {_text_of(value)}".removesuffix(": "))
        case _:
            return value


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001  the text of an error is the code of whoever wrote it
        return f"its text cannot be shown: {type(broken).__name__}"
