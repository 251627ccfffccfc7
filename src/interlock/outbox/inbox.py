"""The consumer's side: has this message been handled already?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import InvalidOption
from interlock.outbox.publish import checked_text
from interlock.store.adapters.choose import adapt, adapt_blocking
from interlock.store.adapters.protocol import run, run_blocking
from interlock.store.inbox import InboxMessages
from interlock.store.sql import Catalog
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.store.adapters.protocol import Steps


class Inbox:
    """`app.inbox`: what makes a delivery that comes twice count once, in the consumer's own transaction."""

    def __init__(self, schema: Callable[[], str]) -> None:
        self._schema = schema

    async def aonce(self, conn: object, consumer: str, message_id: str) -> bool:
        """True the first time; False says that a committed transaction has handled the message already.

        Write what follows from the message in the same transaction. If it is rolled back, the next delivery is the
        first again; a second one that comes meanwhile waits for this one to end.
        """
        return await run(adapt(conn), self._once(consumer, message_id))

    def once(self, conn: object, consumer: str, message_id: str) -> bool:
        """The blocking twin of `aonce`."""
        return run_blocking(adapt_blocking(conn), self._once(consumer, message_id))

    def _once(self, consumer: str, message_id: str) -> Steps[bool]:
        if checked_text("message_id", message_id) is None:
            raise InvalidOption(option="message_id", found=None, expected="the id of the message that is handled")
        return InboxMessages(Catalog(self._schema())).once(checked_name("consumer", consumer), message_id)
