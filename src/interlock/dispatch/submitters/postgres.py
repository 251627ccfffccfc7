from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.model.work import Dispatched


class PostgresSubmitter:
    """Background jobs, inserted by the dispatch itself: this process's worker is woken directly, the others by a notice
    when there is more than it can take.
    """

    def __init__(
        self, *, wake: Callable[[], None], free_slots: Callable[[], int], notify: Callable[[str], None]
    ) -> None:
        self._wake, self._free_slots, self._notify = wake, free_slots, notify

    async def committed(self, dispatched: Sequence[Dispatched]) -> None:
        if len(dispatched) > self._free_slots():
            self._notify("job:")
        self._wake()
