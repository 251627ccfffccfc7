"""What every adapter offers: our compiled statements, run on the user's own connection.

An adapter never begins, commits or rolls back: what it writes shares the fate of the user's transaction. Work that
takes several statements is written once, as a generator that yields calls and is sent their rows; `run` and
`run_blocking` drive it on either kind of connection. A driver's own word for tables that are missing does not say what
to run, and a failed transaction can no longer be asked for the version of the schema: ours says what can be known.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from interlock.errors import TablesMissing
from interlock.store.fault import is_undefined

if TYPE_CHECKING:
    from interlock.store.sql import Statement

T = TypeVar("T")

Row: TypeAlias = Mapping[str, Any]


class Call(NamedTuple):
    """One statement to run."""

    statement: Statement
    values: Mapping[str, Any]


Steps: TypeAlias = Generator[Call, Sequence[Row], T]


class AsyncAdapter(Protocol):
    """A connection whose calls are awaited."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, so that what was written may not be seen by others yet."""

    async def fetch(self, call: Call) -> Sequence[Row]: ...


class BlockingAdapter(Protocol):
    """A connection whose calls block."""

    @property
    def in_transaction(self) -> bool:
        """See AsyncAdapter."""

    def fetch(self, call: Call) -> Sequence[Row]: ...


async def run(adapter: AsyncAdapter, steps: Steps[T]) -> T:
    """What the steps answer, each awaited on this connection."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await adapter.fetch(call))
    except StopIteration as end:
        answer: T = end.value
        return answer
    except Exception as error:
        if is_undefined(error):
            raise _tables_missing(call, error) from error
        raise
    finally:
        steps.close()


def run_blocking(adapter: BlockingAdapter, steps: Steps[T]) -> T:
    """The same, on a connection whose calls block."""
    try:
        call = next(steps)
        while True:
            call = steps.send(adapter.fetch(call))
    except StopIteration as end:
        answer: T = end.value
        return answer
    except Exception as error:
        if is_undefined(error):
            raise _tables_missing(call, error) from error
        raise
    finally:
        steps.close()


def _tables_missing(call: Call, error: Exception) -> TablesMissing:
    return TablesMissing(schema=call.statement.schema, reason=str(error).partition("\n")[0])
