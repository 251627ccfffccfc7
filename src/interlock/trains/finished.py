"""What a hook is told about a run whose end is written."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.errors import InvalidOption

if TYPE_CHECKING:
    from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One attempt that completed, with its output, or that failed, with its error and what follows from it.

    `retry_in` is None where it is not tried again; after an outage in the middle of the write it may be unknown, too.
    """

    execution_id: int
    train: str
    manifest: str | None
    attempt: int
    took: timedelta
    output: Any = None
    error: BaseException | None = None
    error_type: str | None = None
    error_message: str | None = None
    retry_in: timedelta | None = None
    dead_letter_id: int | None = None


Hook: TypeAlias = Callable[[FinishedRun], Awaitable[object]]


def checked_hook(option: str, found: object) -> Hook:
    hook: Hook = checked_async(option, found, "run")
    return hook


def checked_async(option: str, found: Any, parameter: str) -> Any:
    """A function that runs on the event loop and takes one argument; a plain one would hold up everything else."""
    if not is_async(found) or not _takes_one(found):
        raise InvalidOption(option=option, found=found, expected=f"an async function of one parameter, `{parameter}`")
    return found


def is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  an object whose call is async


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    return True
