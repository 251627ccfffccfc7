"""Why a call cannot be answered from where it was made, or with what it was given."""

from __future__ import annotations

from interlock.errors.base import InterlockError, UsageError


class InvalidInput(UsageError):
    train: str
    problem: str

    def __str__(self) -> str:
        return f"input of train {self.train!r}: {self.problem}"


class PayloadTooLarge(UsageError):
    what: str
    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"{self.what} is {self.size:,} bytes, the limit is {self.limit:,}; store it elsewhere and pass a reference,"
            " or raise the limit in the settings"
        )


class UnsupportedConnection(UsageError):
    found: str
    expected: str

    def __str__(self) -> str:
        return f"a connection of type {self.found} cannot be used here; expected {self.expected}"


class KeyNeedsReadCommitted(UsageError):
    key: str
    isolation: str

    def __str__(self) -> str:
        return (
            f"the key {self.key!r} was enqueued in a transaction at {self.isolation}, whose snapshot cannot see who"
            " holds the key now; use read committed, or enqueue outside of that transaction"
        )


class KeyTaken(UsageError):
    key: str
    train: str
    holder: str

    def __str__(self) -> str:
        return (
            f"the key {self.key!r} of train {self.train!r} is held by work of the train {self.holder!r};"
            " begin the key with the name of the train"
        )


class KeyContended(InterlockError):
    key: str

    def __str__(self) -> str:
        return f"the key {self.key!r} was taken and let go each time it was looked up; enqueue again"


class ResultBeforeCommit(UsageError):
    entry_id: int

    def __str__(self) -> str:
        return (
            f"entry {self.entry_id} was enqueued in a transaction that has not been committed, so that nobody can run"
            " it yet; commit first, then ask for the result"
        )


class SyncCallInEventLoop(UsageError):
    twin: str

    def __str__(self) -> str:
        return f"a blocking call would stop the event loop of this thread; use its async twin: {self.twin}"


class NotInTrain(UsageError):
    def __str__(self) -> str:
        return "no train runs here; current_execution() is for code that a worker runs, a plain call has no execution"


class NotOpen(UsageError):
    """The embedded database has an address only while somebody uses it."""

    def __str__(self) -> str:
        return (
            "no database was named, and the embedded one has an address only while the app is open; ask for it inside"
            " `async with app:`, `with app:` or `app.running()`"
        )


class ResourceNotOpen(UsageError):
    name: str

    def __str__(self) -> str:
        return (
            f"the resource {self.name!r} is not open here; a worker opens it for its trains and hooks, other code does "
            f"with `async with {self.name}.opened()`"
        )
