"""Which trains run elsewhere, and who submits them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interlock.dispatch.submitters.protocol import Route
from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption
from interlock.trains.train import Train

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.dispatch.submitters.protocol import Submitter
    from interlock.trains.registry import Registry

TAG = "submits:"
"""How the registry of servers shows which trains a dispatcher submits elsewhere."""
TRAINS = "a list of trains of this app, or of their names"


class Routes:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._routes: list[Route] = []
        self._frozen = False

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    @property
    def trains(self) -> frozenset[str]:
        return frozenset(name for route in self._routes for name in route.trains)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(f"{TAG}{name}" for name in sorted(self.trains))

    def add(self, submitter: Submitter, trains: Iterable[Train[..., Any, Any] | str]) -> None:
        if self._frozen:
            raise DeclarationAfterStart(what=f"the submitter {_name_of(submitter)!r}")
        names: set[str] = set()
        for train in self._declared(trains):
            if train.name in self.trains | names:
                hint = "a train goes to one submitter; put several runners behind one address"
                raise DuplicateName(kind="the submitter of train", name=train.name, hint=hint)
            names |= {train.name, *train.options.aliases}
        if not _name_of(submitter) or not names:
            expected = "a submitter (name, submit, aclose), for example HttpSubmitter(…), and at least one train"
            raise InvalidOption(option="add_submitter", found=(submitter, sorted(names)), expected=expected)
        self._routes.append(Route(submitter, frozenset(names)))

    def freeze(self) -> None:
        """From now on declarations are refused: a server runs."""
        self._frozen = True

    def _declared(self, trains: Iterable[Train[..., Any, Any] | str]) -> Iterator[Train[..., Any, Any]]:
        if isinstance(trains, str) or not isinstance(trains, Iterable):
            raise InvalidOption(option="trains", found=trains, expected=TRAINS)
        for each in trains:
            if not isinstance(each, Train | str):
                raise InvalidOption(option="trains", found=each, expected=TRAINS)
            if isinstance(each, Train):
                self._registry.refuse_foreign(each)
            yield self._registry.get(each if isinstance(each, str) else each.name)


def _name_of(submitter: object) -> str:
    name = getattr(submitter, "name", None)
    complete = all(callable(getattr(submitter, method, None)) for method in ("submit", "aclose"))
    return name if isinstance(name, str) and complete else ""
