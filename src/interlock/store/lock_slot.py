"""The `lock_slot` table: slot n of a name, who holds it and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interlock.errors import DatabaseUnavailable, LockServiceUnavailable
from interlock.model.lease import Grant, Holder, Peers, Refusal, SlotInTransaction
from interlock.store.adapters.protocol import Call
from interlock.store.lock_agreement import agree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta
    from uuid import UUID

    from interlock.model.lease import Held, SlotRequest
    from interlock.store.adapters.protocol import Steps
    from interlock.store.connection import Connection, Record
    from interlock.store.lock_agreement import Agreement
    from interlock.store.sql import Catalog


class Unsettled:
    """Slots are free, but none is offered to those who want this many: that has to be agreed on first."""


UNSETTLED = Unsettled()
_NOBODY = Peers()


class LockSlots:
    """The slots of one namespace."""

    def __init__(self, sql: Catalog, namespace: str) -> None:
        self._sql, self._namespace = sql, namespace

    async def acquire(self, conn: Connection, request: SlotRequest) -> Grant | Refusal | Unsettled:
        """Take the first free slot; the rows of a name that nobody has used for long are made first."""
        row = await self._try(conn, request)
        if not row["made"]:
            await self.prepare(conn, request.name, request.slots)
            row = await self._try(conn, request)
        if _is_unsettled(row, request.slots):
            return UNSETTLED
        return _answer(row, await self._peers(conn, request, row))

    async def acquire_agreed(self, conn: Connection, request: SlotRequest, agreement: Agreement) -> Grant | Refusal:
        """The same, in the transaction in which it was agreed on what is offered."""
        row = await self._try(conn, request)
        return _answer(row, agreement.peers)

    async def agree(self, conn: Connection, name: str, slots: int, start: int) -> Agreement:
        """Offer as many free slots to those who want this N as the smallest N of all holders leaves."""
        which = {"namespace": self._namespace, "name": name}
        await self._sql["lock_slot/agree"].execute(conn, **which)
        await self._sql["lock_slot/make_missing"].execute(conn, **which, slots=slots)
        free = [row["slot"] for row in await self._sql["lock_slot/lock_free"].fetch(conn, **which)]
        held = await self._sql["lock_slot/list_held"].fetch(conn, **which, free=free)
        agreement = agree(slots, start, free, {row["slot"]: (row["slots"], row["holder"]) for row in held})
        if agreement.offered:
            await self._sql["lock_slot/offer"].execute(conn, **which, slots=slots, free=free, offered=agreement.offered)
        return agreement

    async def prepare(self, conn: Connection, name: str, slots: int) -> None:
        """Make the rows of a name that has none."""
        await self._sql["lock_slot/prepare"].execute(conn, namespace=self._namespace, name=name, slots=slots)

    async def extend_if_held(self, conn: Connection, held: Sequence[Held]) -> dict[UUID, timedelta]:
        """How much remains, by token; one that is missing is lost."""
        rows = await self._sql["lock_slot/extend"].fetch(
            conn,
            namespace=self._namespace,
            names=[each.name for each in held],
            slot_numbers=[each.slot for each in held],
            tokens=[each.token for each in held],
            ttls=[each.ttl for each in held],
        )
        return {row["token"]: row["remaining"] for row in rows}

    async def release_if_held(self, conn: Connection, name: str, token: UUID, at_least: timedelta) -> bool:
        slot = await self._sql["lock_slot/release"].fetchval(
            conn, namespace=self._namespace, name=name, token=token, at_least=at_least
        )
        return slot is not None

    async def force_release(self, conn: Connection, name: str, slot: int) -> Holder | None:
        """Free a slot whoever holds it; answers who did."""
        row = await self._sql["lock_slot/force_release"].fetchrow(conn, namespace=self._namespace, name=name, slot=slot)
        return None if row is None else _holder(row)

    def lock_in_transaction(self, name: str, slots: int, start: int) -> Steps[SlotInTransaction | Unsettled | None]:
        """Lock the row of a free slot until the user's transaction ends."""
        values = {"namespace": self._namespace, "name": name, "slots": slots, "start": start}
        [row] = yield Call(self._sql["lock_slot/hold_in_transaction"], values)
        if row["slot"] is not None:
            return SlotInTransaction(name=name, slot=row["slot"], fence=row["fence"])
        return UNSETTLED if _is_unsettled(row, slots) else None

    async def list(self, conn: Connection, name: str | None = None) -> list[Holder]:
        rows = await self._sql["lock_slot/list"].fetch(conn, namespace=self._namespace, name=name)
        return [_holder(row) for row in rows]

    async def forget(self, conn: Connection, *, older_than: timedelta, limit: int) -> int:
        """Delete rows that nobody has held for long, of every namespace."""
        return len(await self._sql["lock_slot/forget"].fetch(conn, older_than=older_than, limit=limit))

    async def _peers(self, conn: Connection, request: SlotRequest, row: Record) -> Peers:
        """Who takes the name for another number of slots is asked for only when somebody does: hardly ever."""
        if not row["holders"]:
            return _NOBODY
        peers = Peers(holders=row["holders"], narrowest=row["narrowest"], widest=row["widest"])
        if peers.disagreeing(request.slots) is None:
            return peers
        owners = {holder.slots: holder.owner for holder in await self.list(conn, request.name)}
        narrowest_by, widest_by = (owners.get(number) for number in (row["narrowest"], row["widest"]))
        return replace(peers, narrowest_by=narrowest_by, widest_by=widest_by)

    async def _try(self, conn: Connection, request: SlotRequest) -> Record:
        row = await self._sql["lock_slot/acquire"].fetchrow(
            conn,
            namespace=self._namespace,
            name=request.name,
            slots=request.slots,
            start=request.start,
            token=request.token,
            server_id=request.server,
            holder=request.owner,
            ttl=request.ttl,
        )
        if row is None:
            raise AssertionError("the statement answers one row, whatever it finds")
        return row


class lock_service:  # noqa: N801  it is used like the functions of contextlib
    """Whatever goes wrong between us and PostgreSQL is one error to those who want a lock.

    A class and not a generator: it is entered twice for each hold.
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        import asyncpg  # noqa: PLC0415  the driver loads on first use

        if isinstance(error, DatabaseUnavailable):
            raise LockServiceUnavailable(where=self._where, reason=error.reason) from error
        if isinstance(error, asyncpg.UndefinedTableError):
            reason = f"{error}; run: interlock schema apply"
            raise LockServiceUnavailable(where=self._where, reason=reason) from error
        if isinstance(error, OSError | TimeoutError | asyncpg.PostgresError | asyncpg.InterfaceError):
            raise LockServiceUnavailable(where=self._where, reason=str(error) or "no answer in time") from error


def _is_unsettled(row: Record | Mapping[str, Any], slots: int) -> bool:
    """Whether it is worth to agree: not where the leases that everybody sees use up the smallest N already."""
    taken, full = row["slot"] is not None, row["holders"] >= min(slots, row["narrowest"] or slots)
    return not taken and not full and bool(row["settled"] < slots)


def _answer(row: Record, peers: Peers) -> Grant | Refusal:
    if row["slot"] is None:
        return Refusal(peers=peers, free_in=row["free_in"])
    return Grant(
        slot=row["slot"],
        fence=row["fence"],
        acquired_at=row["acquired_at"],
        remaining=row["remaining"],
        expired=row["expired"],
        peers=peers,
    )


def _holder(row: Record) -> Holder:
    return Holder(
        name=row["name"],
        slot=row["slot"],
        owner=row["holder"],
        slots=row["slots"],
        fence=row["fence"],
        ttl=row["ttl"],
        acquired_at=row["acquired_at"],
        age=row["age"],
        expires_in=row["expires_in"],
        server=row["server_id"],
    )
