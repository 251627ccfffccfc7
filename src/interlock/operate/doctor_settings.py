"""Findings about settings that contradict each other. What is plainly wrong is refused when they are read; this looks
at the settings as they are, however they came about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.words import span
from interlock.operate.doctor_finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.operate.explain_surface import Sections

COMMAND = "interlock config --show-origin"


def check_settings(settings: Sections) -> Iterator[Finding]:
    yield from check_dispatch(settings)
    yield from check_times(settings)


def check_dispatch(settings: Sections) -> Iterator[Finding]:
    dispatches, pool = settings.dispatch.max_concurrent_dispatch, settings.store.pool_size
    if dispatches >= pool:
        yield _contradiction(
            "dispatch_concurrency",
            f"max_concurrent_dispatch is {dispatches} and pool_size {pool}: dispatching takes every connection",
            "raise pool_size, or lower max_concurrent_dispatch",
        )


def check_times(settings: Sections) -> Iterator[Finding]:
    manifests, store, runtime = settings.manifests, settings.store, settings.runtime
    if manifests.stale_in_progress_timeout <= manifests.default_job_timeout:
        yield _contradiction(
            "timeouts",
            f"stale_in_progress_timeout ({span(manifests.stale_in_progress_timeout)}) is not longer than"
            f" default_job_timeout ({span(manifests.default_job_timeout)})",
            "raise stale_in_progress_timeout",
        )
    if runtime.heartbeat > runtime.lease / 3:
        yield _contradiction("heartbeat", "the heartbeat is longer than a third of the lease", "lower heartbeat")
    if store.tick_idle_timeout > runtime.lease:
        yield _contradiction(
            "tick_idle_timeout",
            f"a paused leader keeps its locks (tick_idle_timeout: {span(store.tick_idle_timeout)}) for longer than its"
            f" lease ({span(runtime.lease)})",
            "lower tick_idle_timeout",
        )
    if settings.upkeep.execution_retention < manifests.stale_in_progress_timeout:
        yield _contradiction(
            "retention",
            "history is deleted (execution_retention) before a run counts as stale",
            "raise execution_retention",
        )


def _contradiction(check: str, found: str, advice: str) -> Finding:
    return Finding(check, found, advice, COMMAND)
