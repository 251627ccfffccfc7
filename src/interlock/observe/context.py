"""Which execution the running code belongs to; follows tasks, and threads that carry the context along."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """One attempt at a train, as every log record inside of it names it."""

    execution_id: int
    train: str
    manifest: str | None = None
    attempt: int = 1


_current: ContextVar[ExecutionContext | None] = ContextVar("interlock_execution", default=None)


def current() -> ExecutionContext | None:
    """The execution that this code runs in, or None outside of a train."""
    return _current.get()


@contextmanager
def bound(context: ExecutionContext) -> Iterator[ExecutionContext]:
    """Everything inside the block belongs to this execution."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
