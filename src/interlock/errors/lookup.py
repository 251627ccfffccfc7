"""What was named does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from interlock.errors.base import InterlockError

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotFound(InterlockError, LookupError):
    """What was named does not exist."""

    exit_code: ClassVar[int] = 3
    kind: ClassVar[str] = "thing"
    listed_by: ClassVar[str] = ""
    name: str
    known: Sequence[str] = ()

    def __str__(self) -> str:
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        listed = f"; see: {self.listed_by}" if self.listed_by and not known else ""
        return f"no {self.kind} is called {self.name!r}{known}{listed}"


class UnknownTrain(NotFound):
    kind: ClassVar[str] = "train"

    def __str__(self) -> str:
        nowhere = "; none is known here: declare it, name the app with -a, or start a server that has it"
        return super().__str__() + ("" if self.known else nowhere)


class UnknownManifest(NotFound):
    kind: ClassVar[str] = "manifest"
    listed_by: ClassVar[str] = "interlock manifests list"


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


class UnknownGroup(NotFound):
    kind: ClassVar[str] = "manifest group"
    listed_by: ClassVar[str] = "interlock groups list"


class UnknownLockHolder(NotFound):
    kind: ClassVar[str] = "held lock slot"
    listed_by: ClassVar[str] = "interlock locks list"


class UnknownWork(NotFound):
    kind: ClassVar[str] = "execution or entry"
    listed_by: ClassVar[str] = "interlock executions list, interlock queue list"


class UnknownDeadLetter(NotFound):
    kind: ClassVar[str] = "dead letter"
    listed_by: ClassVar[str] = "interlock dead-letters list --state all"


class UnknownMessage(NotFound):
    kind: ClassVar[str] = "message"
    listed_by: ClassVar[str] = "interlock outbox list"


class UnknownTimer(NotFound):
    kind: ClassVar[str] = "timer"
    listed_by: ClassVar[str] = "interlock timers list"
