"""One step of a worker, for tests that let nothing run by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from interlock.worker.hooks import Hooks
    from interlock.worker.worker import Worker


class Worked(NamedTuple):
    """How many jobs were claimed; all of them have ended, whether they succeeded or not."""

    jobs: int = 0


async def work_and_tell(worker: Worker, hooks: Hooks) -> Worked:
    """One step, after which everybody has heard of what ended in it."""
    jobs = await worker.step()
    await hooks.finished()
    return Worked(jobs)
