"""What an app adds to the running of its trains: resources, middleware and hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from interlock.errors import DeclarationAfterStart
from interlock.trains.finished import checked_async, checked_hook
from interlock.worker.resource import Resource

if TYPE_CHECKING:
    from interlock.trains.finished import Hook
    from interlock.worker.resource import Lifespan

T = TypeVar("T")

CallNext: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[CallNext], Awaitable[Any]]


class Extensions:
    """Declared at import; what a server has started with does not change any more."""

    def __init__(self) -> None:
        self.resources: list[Resource[Any]] = []
        self.middleware: list[Middleware] = []
        self.on_success: list[Hook] = []
        self.on_failure: list[Hook] = []
        self._frozen = False

    def freeze(self) -> None:
        self._frozen = True

    def add_resource(self, function: Lifespan[T]) -> Resource[T]:
        self._refuse_after_start("a lifespan")
        resource = Resource(function)
        self.resources.append(resource)
        return resource

    def add_middleware(self, function: Middleware) -> None:
        self._refuse_after_start("a middleware")
        self.middleware.append(checked_async("middleware", function, "call_next"))

    def add_hook(self, occasion: str, function: Hook) -> None:
        self._refuse_after_start(f"an {occasion} hook")
        hooks = self.on_success if occasion == "on_success" else self.on_failure
        hooks.append(checked_hook(occasion, function))

    def around(self, body: CallNext) -> Awaitable[Any]:
        """The body inside all middleware; what was declared first is outermost."""
        for function in reversed(self.middleware):
            body = partial(function, body)
        return body()

    def _refuse_after_start(self, what: str) -> None:
        if self._frozen:
            raise DeclarationAfterStart(what=what)
