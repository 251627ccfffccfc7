"""Work on its way to another server: taken over there, or put back here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.execution import Claim

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from interlock.model.execution import Reservation
    from interlock.model.posted import Posted
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog


class Submitting:
    def __init__(self, sql: Catalog) -> None:
        self._take_over, self._put_back = sql["dispatch/take_over"], sql["dispatch/put_back"]

    async def take_over_if_held(
        self, conn: Connection, posted: Posted, reservation: Reservation, *, now: datetime | None
    ) -> list[Claim]:
        """The claim, if the one who submits still has it: none for what was requeued, cancelled or taken already."""
        rows = await self._take_over.fetch(
            conn,
            id=posted.execution_id,
            train=posted.train,
            submitted=posted.token,
            server=reservation.server,
            host=reservation.host,
            token=reservation.token,
            now=now,
        )
        return [Claim._make(row) for row in rows]

    async def put_back_if_held(self, conn: Connection, token: UUID) -> int:
        """Queue again, in its place, what is still held by this token and was neither taken nor requeued."""
        return len(await self._put_back.fetch(conn, token=token))
