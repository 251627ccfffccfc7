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
    name: str
    known: Sequence[str] = ()

    def __str__(self) -> str:
        known = f"; known: {', '.join(self.known)}" if self.known else ""
        return f"no {self.kind} is called {self.name!r}{known}"


class UnknownTrain(NotFound):
    kind: ClassVar[str] = "train"


class UnknownManifest(NotFound):
    kind: ClassVar[str] = "manifest"


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


class UnknownLockHolder(NotFound):
    kind: ClassVar[str] = "held lock slot"


class UnknownWork(NotFound):
    kind: ClassVar[str] = "execution or entry"


class UnknownDeadLetter(NotFound):
    kind: ClassVar[str] = "dead letter"


class UnknownMessage(NotFound):
    kind: ClassVar[str] = "message"


class UnknownTimer(NotFound):
    kind: ClassVar[str] = "timer"
