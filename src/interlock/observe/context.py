"""Which execution the running code belongs to; follows tasks, and threads that carry the context along."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Attempt(Protocol):
    """Whatever can say which attempt at which train it is."""

    @property
    def execution_id(self) -> int: ...

    @property
    def train(self) -> str: ...

    @property
    def manifest(self) -> str | None: ...

    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class ExecutionContext:
    """One attempt at a train, as every log record inside of it names it."""

    execution_id: int
    train: str
    manifest: str | None = None
    attempt: int = 1


_current: ContextVar[Attempt | None] = ContextVar("interlock_execution", default=None)


def current() -> Attempt | None:
    """The execution that this code runs in, or None outside of a train."""
    return _current.get()


def enter(attempt: Attempt) -> None:
    """From here on this task, and what it starts, belongs to the attempt; for a task that does nothing else."""
    _current.set(attempt)


@contextmanager
def bound(context: ExecutionContext) -> Iterator[ExecutionContext]:
    """Everything inside the block belongs to this execution."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)
