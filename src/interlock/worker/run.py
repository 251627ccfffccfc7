"""Calls the body of a job, and hands over what came of it; whatever a body raises ends here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import PayloadTooLarge
from interlock.observe.context import enter
from interlock.store.fault import is_passing
from interlock.trains.run import encoded
from interlock.worker.extensions import Extensions
from interlock.worker.job import Cause, interruptible
from interlock.worker.outcome import ending_of, interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from interlock.model.execution import Interruption
    from interlock.model.outcome import Ending
    from interlock.runtime.threads import Threads
    from interlock.store.database import Database
    from interlock.store.execution import Executions
    from interlock.worker.job import Job
    from interlock.worker.processes import Processes


class Runner:
    """`finished` is told the ending of each job, or None for one that is not to be ended here."""

    def __init__(
        self,
        database: Database,
        executions: Executions,
        threads: Threads,
        processes: Processes,
        *,
        max_output_bytes: int,
        extensions: Extensions | None = None,
        completed: Callable[[Job], None],
        stopped: Callable[[Job, Ending | None], None],
    ) -> None:
        self._database, self._executions = database, executions
        self._threads, self._processes = threads, processes
        self._max_output_bytes, self._extensions = max_output_bytes, extensions or Extensions()
        self._completed, self._stopped = completed, stopped

    async def run(self, job: Job) -> None:
        enter(job)
        job.began = True
        try:
            job.stop_if_marked()
            job.output = await self._output(job)
        except BaseException as error:  # noqa: BLE001  SystemExit and MemoryError are the train's failures, not ours
            job.error = error
            self._stopped(job, ending_of(job, error))
        else:
            # A plain function that asked, heard that it is to stop and returned has stopped because of it.
            if job.heeded and job.cause is not None:
                self._stopped(job, interrupted(job))
            else:
                self._completed(job)

    async def _output(self, job: Job) -> str:
        if self._extensions.middleware:
            output = await interruptible(self._inside_middleware(job), job)
            return self._checked(encoded(job.declaration, output).decode())
        if job.declaration.options.process:
            return self._checked(await interruptible(self._processes.run(job), job))
        output = await interruptible(self._body(job), job)
        return self._checked(encoded(job.declaration, output).decode())

    def _body(self, job: Job) -> Coroutine[Any, Any, Any]:
        train = job.declaration
        arguments = train.signature.decode(job.claim.input)
        job.has_input = True
        junctions = train.junctions
        if len(junctions) == 1 and junctions[0].is_async:
            body: Coroutine[Any, Any, Any] = junctions[0].function(**arguments)
            return body
        return train.run(arguments, progress=_Boundary(self, job), call_plain=_InThread(self._threads, job))

    async def _inside_middleware(self, job: Job) -> Any:
        async def call() -> Any:
            train = job.declaration
            if train.options.process:
                return train.signature.decode_output(await self._processes.run(job))
            return await self._body(job)

        return await self._extensions.around(call)

    def _checked(self, output: str) -> str:
        # A text has at most as many characters as bytes: only a long one is worth the count.
        if len(output) * 4 > self._max_output_bytes and (size := len(output.encode())) > self._max_output_bytes:
            raise PayloadTooLarge(what="the output", size=size, limit=self._max_output_bytes)
        return output

    async def record(self, job: Job, junction: str, index: int, total: int) -> None:
        """Write where it is, and hear whether it is to stop; a database that is away does not stop it."""
        try:
            async with self._database.connection() as conn:
                found = await self._executions.progress(
                    conn, job.execution_id, job.token, junction=junction, index=index, total=total
                )
        except Exception as error:
            if not is_passing(error):
                raise
        else:
            mark(job, found)


def mark(job: Job, found: Interruption | None) -> bool:
    """Take note of what happened to the job from outside; answers whether that is new."""
    if found is None:
        return False
    return job.mark(Cause(found.cancel_cause) if found.cancel_cause and not found.lost else Cause.LOST)


class _Boundary:
    """Cancellation is checked and progress recorded where one junction ends and the next begins."""

    def __init__(self, runner: Runner, job: Job) -> None:
        self._runner, self._job = runner, job

    async def boundary(self, junction: str, index: int, total: int) -> None:
        if total > 1:
            self._job.junction = junction
            await self._runner.record(self._job, junction, index, total)
        self._job.stop_if_marked()


class _InThread:
    """While a body is in a thread its task is not cancelled: the slot is taken until the thread comes back."""

    def __init__(self, threads: Threads, job: Job) -> None:
        self._threads, self._job = threads, job

    async def __call__(self, function: Callable[[], Any]) -> Any:
        self._job.in_threads += 1
        try:
            return await self._threads.call(function)
        finally:
            self._job.in_threads -= 1
