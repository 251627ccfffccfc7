"""What an app offers for what its trains share and who hears of their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from interlock.trains.finished import Hook
    from interlock.worker.extensions import Extensions, Middleware
    from interlock.worker.resource import Lifespan, Resource

    M = TypeVar("M", bound=Middleware)
    H = TypeVar("H", bound=Hook)

T = TypeVar("T")


class ExtendedApp:
    """Resources, middleware and hooks of an app."""

    extensions: Extensions

    def lifespan(self, function: Lifespan[T]) -> Resource[T]:
        """Open this once per worker, before it claims, and close it after its last job; trains read `.value`.

        Several are opened in the order of their declaration and closed in reverse.
        """
        return self.extensions.add_resource(function)

    def middleware(self, function: M) -> M:
        """Run each body inside this function, which awaits `call_next()` and returns the output."""
        self.extensions.add_middleware(function)
        return function

    def on_success(self, function: H) -> H:
        """Call this, with a `FinishedRun`, after the success of any train is written."""
        self.extensions.add_hook("on_success", function)
        return function

    def on_failure(self, function: H) -> H:
        """Call this, with a `FinishedRun`, after the failure of an attempt of any train is written."""
        self.extensions.add_hook("on_failure", function)
        return function
