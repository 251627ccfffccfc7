"""Why a command of an operator, or a server, did not do or go on with what it was asked."""

from __future__ import annotations

from interlock.errors.base import InterlockError


class NotPermitted(InterlockError):
    actor: str
    permission: str

    def __str__(self) -> str:
        return f"{self.actor} lacks the permission {self.permission!r}; ask an admin for a role that has it"


class NotEnded(InterlockError):
    execution_id: int
    state: str

    def __str__(self) -> str:
        return (
            f"execution {self.execution_id} is {self.state}; wait for its end, or run:"
            f" interlock executions cancel {self.execution_id}"
        )


class AlreadyResolved(InterlockError):
    """Of two who resolve a dead letter at once, one wins; the other gets this."""

    dead_letter_id: int
    state: str
    resolved_by: str | None = None

    def __str__(self) -> str:
        by = f" by {self.resolved_by}" if self.resolved_by else ""
        return f"dead letter {self.dead_letter_id} is {self.state} already{by}; nothing was changed"


class ComponentEnded(InterlockError):
    """A part of a running server ended although nobody asked it to."""

    component: str

    def __str__(self) -> str:
        return f"the component {self.component!r} ended by itself while the server was running; the server stops"
