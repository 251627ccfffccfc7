from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.trains.train import Train


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchSettings:
    """How much may be active, and how entries are handed over."""

    job_dispatcher_polling_interval: timedelta = timedelta(seconds=2)
    max_active_jobs: int | None = None
    max_queued_jobs_per_cycle: int | None = 100
    max_concurrent_dispatch: int = 1
    max_dispatch_attempts: int = 5
    exclude_from_max_active_jobs: tuple[str, ...] = ()
    max_input_bytes: int = 1024 * 1024

    def naming(self, trains: Iterable[Train[..., Any, Any]]) -> DispatchSettings:
        """The same, with each of the names of a train that does not count: its entries may carry an older one."""
        uncounted = set(self.exclude_from_max_active_jobs)
        for train in trains:
            names = {train.name, *train.options.aliases}
            if names & uncounted:
                uncounted |= names
        return replace(self, exclude_from_max_active_jobs=tuple(sorted(uncounted)))

    @property
    def tags(self) -> tuple[str, ...]:
        """How the registry shows the cap on everything that a dispatcher obeys."""
        cap = () if self.max_active_jobs is None else (f"max_active_jobs:{self.max_active_jobs}",)
        return (*cap, *(f"uncounted:{train}" for train in self.exclude_from_max_active_jobs))
