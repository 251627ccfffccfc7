"""Turns what the database holds into sentences, each said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.lifecycle import ExecutionState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from interlock.model.lifecycle import ServerState
    from interlock.model.server import ServerRow
    from interlock.store.summary import ExecutionNews

ACTIVE = frozenset({ExecutionState.PENDING, ExecutionState.IN_PROGRESS})


class News:
    def __init__(self) -> None:
        self.servers: dict[UUID, ServerState] = {}
        self.just_began: dict[str, str] = {}
        """The trains of which an execution was not yet running at the last look, each with a server that runs it."""
        self._executions: dict[int, ExecutionState] = {}
        self.from_id = 1

    def of_servers(self, rows: Sequence[ServerRow]) -> Iterator[str]:
        for row in rows:
            if self.servers.get(row.id) is not row.state:
                self.servers[row.id] = row.state
                yield f"{row.profile.name} ({str(row.id)[:8]}) is {row.state}"

    def of_executions(self, rows: Sequence[ExecutionNews]) -> Iterator[str]:
        self.just_began = {}
        for row in rows:
            if self._executions.get(row.id) is not row.state:
                self._executions[row.id] = row.state
                if row.state is ExecutionState.IN_PROGRESS and row.host:
                    self.just_began[row.train] = row.host
                elif row.state not in ACTIVE:
                    yield _sentence(row)
        self.from_id = min(
            (row.id for row in rows if row.state in ACTIVE), default=max(self._executions, default=0) + 1
        )


def _sentence(row: ExecutionNews) -> str:
    what = f"{row.manifest}: {row.train}" if row.manifest and row.manifest != row.train else row.train
    subject = f"{what} (execution {row.id})"
    if row.failure == "worker_lost":
        return f"{subject} was lost with {row.host}; queued again in its old place"
    if row.state is ExecutionState.FAILED:
        return f"{subject} failed at attempt {row.attempt}: {row.error_message or row.failure}; {_follows(row)}"
    again = f" at attempt {row.attempt}" if row.attempt > 1 else ""
    again += ", recovered from a lost server" if row.crashes else ""
    return f"{subject} {row.state} on {row.host}{again}"


def _follows(row: ExecutionNews) -> str:
    if row.dead_letter_id is not None:
        return f"dead letter {row.dead_letter_id} waits for a person"
    return "over" if row.retry_in is None else f"again in {row.retry_in.total_seconds():.1f} s"
