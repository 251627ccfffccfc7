"""The root of all errors, and the branch of those that blame the caller."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform

from interlock.fields import WithFields

_LONGEST_SHOWN = 300


@dataclass_transform(kw_only_default=True, eq_default=False)
class InterlockError(WithFields, Exception):
    """The root of every error that Interlock raises."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {name: getattr(self, name) for name in self._fields})


def _rebuild(kind: type[InterlockError], values: dict[str, Any]) -> InterlockError:
    return kind(**values)


class UsageError(InterlockError, ValueError):
    """Something that was passed in is wrong; nothing was written."""

    exit_code: ClassVar[int] = 2


def shown(found: object) -> str:
    """What was passed, as code; of a long one the beginning, because a message is read in one line."""
    text = repr(found)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"
