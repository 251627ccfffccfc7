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
│   ├── PackageMissing
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

from collections.abc import Sequence  # noqa: F401  the fields of an error can be resolved at run time
from typing import ClassVar  # noqa: F401  see above

from interlock.errors.base import (
    InterlockError,
    UsageError,
)
from interlock.errors.calls import (
    InvalidInput,
    KeyContended,
    KeyNeedsReadCommitted,
    KeyTaken,
    NotInTrain,
    NotOpen,
    PayloadTooLarge,
    ResourceNotOpen,
    ResultBeforeCommit,
    SyncCallInEventLoop,
    UnsupportedConnection,
)
from interlock.errors.declaration import (
    AppNotFound,
    ChainMismatch,
    DeclarationAfterStart,
    DependencyCycle,
    DuplicateName,
    InvalidSchedule,
    InvalidTrain,
    NothingDeclares,
    OwnedByAnotherApp,
    TrainWithoutApp,
)
from interlock.errors.embedded import (
    BinariesNotFound,
    DiskFull,
    EmbeddedError,
    FolderTaken,
    FolderUnreachable,
    PortTaken,
    StartFailed,
    WrongBinaries,
)
from interlock.errors.locks import (
    LeaseLost,
    LockServiceUnavailable,
    LockTaken,
)
from interlock.errors.lookup import (
    NotFound,
    UnknownChild,
    UnknownDeadLetter,
    UnknownGroup,
    UnknownLockHolder,
    UnknownManifest,
    UnknownMessage,
    UnknownTimer,
    UnknownTrain,
    UnknownWork,
)
from interlock.errors.operate import (
    AlreadyResolved,
    ComponentEnded,
    NotEnded,
    NotPermitted,
)
from interlock.errors.settings import (
    ContradictingSettings,
    InvalidOption,
    InvalidSchemaName,
    InvalidSetting,
    PackageMissing,
    UnknownSetting,
)
from interlock.errors.store import (
    DatabaseUnavailable,
    SchemaAbsent,
    SchemaError,
    SchemaTooNew,
    SchemaTooOld,
    TablesMissing,
    WriteRefused,
)
from interlock.errors.work import (
    CancelledByRequest,
    ChildDied,
    InvalidOutput,
    JunctionFailed,
    ResultTimeout,
    WorkCancelled,
    WorkDeadLettered,
    WorkFailed,
)

__all__ = [
    "AlreadyResolved",
    "AppNotFound",
    "BinariesNotFound",
    "CancelledByRequest",
    "ChainMismatch",
    "ChildDied",
    "ComponentEnded",
    "ContradictingSettings",
    "DatabaseUnavailable",
    "DeclarationAfterStart",
    "DependencyCycle",
    "DiskFull",
    "DuplicateName",
    "EmbeddedError",
    "FolderTaken",
    "FolderUnreachable",
    "InterlockError",
    "InvalidInput",
    "InvalidOption",
    "InvalidOutput",
    "InvalidSchedule",
    "InvalidSchemaName",
    "InvalidSetting",
    "InvalidTrain",
    "JunctionFailed",
    "KeyContended",
    "KeyNeedsReadCommitted",
    "KeyTaken",
    "LeaseLost",
    "LockServiceUnavailable",
    "LockTaken",
    "NotEnded",
    "NotFound",
    "NotInTrain",
    "NotOpen",
    "NotPermitted",
    "NothingDeclares",
    "OwnedByAnotherApp",
    "PackageMissing",
    "PayloadTooLarge",
    "PortTaken",
    "ResourceNotOpen",
    "ResultBeforeCommit",
    "ResultTimeout",
    "SchemaAbsent",
    "SchemaError",
    "SchemaTooNew",
    "SchemaTooOld",
    "StartFailed",
    "SyncCallInEventLoop",
    "TablesMissing",
    "TrainWithoutApp",
    "UnknownChild",
    "UnknownDeadLetter",
    "UnknownGroup",
    "UnknownLockHolder",
    "UnknownManifest",
    "UnknownMessage",
    "UnknownSetting",
    "UnknownTimer",
    "UnknownTrain",
    "UnknownWork",
    "UnsupportedConnection",
    "UsageError",
    "WorkCancelled",
    "WorkDeadLettered",
    "WorkFailed",
    "WriteRefused",
    "WrongBinaries",
]

for _name in __all__:  # a failure is stored under the name of its error, which is the one that users import it by
    globals()[_name].__module__ = __name__
