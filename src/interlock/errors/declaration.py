"""What is wrong with what code declares: trains, chains, schedules, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors.base import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence


class InvalidSchedule(UsageError):
    found: object
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{shown(self.found)}: {self.problem}" + (f"; {self.hint}" if self.hint else "")


class InvalidTrain(UsageError):
    train: str
    problem: str
    hint: str

    def __str__(self) -> str:
        return f"train {self.train!r}: {self.problem}; {self.hint}"


class TrainWithoutApp(UsageError):
    train: str

    def __str__(self) -> str:
        return f"train {self.train!r} belongs to no app that could enqueue it; declare it with @app.train"


class AppNotFound(UsageError):
    found: str
    problem: str
    advice: str = "name it as module:attribute, for example -a shop.jobs:app"

    def __str__(self) -> str:
        return f"no app at {shown(self.found)}: {self.problem}; {self.advice}"


class DuplicateName(UsageError):
    kind: str
    name: str
    hint: str = "names are unique: rename one of the two"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} is declared twice; {self.hint}"


class ChainMismatch(UsageError):
    chain: str
    junction: str
    problem: str

    def __str__(self) -> str:
        return f"chain {self.chain!r}, junction {self.junction!r}: {self.problem}"


class DependencyCycle(UsageError):
    members: Sequence[str]

    def __str__(self) -> str:
        ring = " → ".join([*self.members, self.members[0]])
        return f"these manifests wait for each other: {ring}; remove one of the dependencies"


class DeclarationAfterStart(UsageError):
    what: str
    advice: str = "declare it at import, because other servers could not know of it"

    def __str__(self) -> str:
        return f"{self.what} was declared after the app started; {self.advice}"


class OwnedByAnotherApp(UsageError):
    external_id: str
    owner: str

    def __str__(self) -> str:
        return (
            f"manifest {self.external_id!r} belongs to the app {self.owner!r};"
            " choose another id or remove it there first"
        )


class NothingDeclares(UsageError):
    app: str | None

    def __str__(self) -> str:
        if self.app is None:
            return "an app without a name owns no manifests that could be pruned; name it: Interlock(name=…)"
        return (
            f"no live server of the app {self.app!r} says what it declares, and no code does; everything would go:"
            " start a server, or name the code with -a"
        )
