from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.model.work import Dispatched


class InlineSubmitter:
    """Runs what was dispatched before the tick ends, for tests; `run` is one tick of a worker, awaited to its end."""

    def __init__(self, run: Callable[[], Awaitable[object]]) -> None:
        self._run = run

    async def committed(self, dispatched: Sequence[Dispatched]) -> None:
        if dispatched:
            await self._run()
