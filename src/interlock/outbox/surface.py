"""`app.outbox`: publish in your own transaction, declare emitters, look at messages and decide about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.outbox.declare import Declaring
from interlock.outbox.publishing import Publishing
from interlock.outbox.review import Reviewing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.observe.bus import Emit
    from interlock.outbox.settings import OutboxSettings
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database


class Outbox(Declaring, Publishing, Reviewing):
    """Messages that are written with what they tell about, and delivered at least once."""

    def __init__(
        self,
        schema: Callable[[], str],
        database: Callable[[], Awaitable[Database]],
        *,
        clock: Callable[[], Clock],
        max_bytes: Callable[[], int],
        settings: Callable[[], OutboxSettings],
        emit: Emit,
    ) -> None:
        Declaring.__init__(self)
        Publishing.__init__(self, schema, clock, max_bytes)
        Reviewing.__init__(self, database, clock, settings, emit)
