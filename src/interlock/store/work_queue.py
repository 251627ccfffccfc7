"""The `work_queue` table, as callers write to it and follow what they wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import KeyContended, KeyNeedsReadCommitted, KeyTaken, UnknownGroup
from interlock.model.lifecycle import ExecutionState, WorkState
from interlock.model.work import Lineage
from interlock.store.adapters.protocol import Call

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from interlock.model.work import NewEntry, Terms
    from interlock.store.adapters.protocol import Row, Steps
    from interlock.store.connection import Connection, Record
    from interlock.store.sql import Catalog

LOOKUPS = 10
READ_COMMITTED = "read committed"


class WorkQueue:
    def __init__(self, sql: Catalog) -> None:
        self._sql = sql

    def enqueue(
        self,
        entries: Sequence[NewEntry],
        *,
        now: datetime | None,
        caused_by: int | None = None,
        trace: str | None = None,
        channel: str | None = None,
        declared: Collection[str] = (),
        held: set[int] | None = None,
    ) -> Steps[list[int]]:
        """Write the entries in one statement; answers their ids in order, for a held key that of its holder, which is
        also put into `held`.

        With a channel the notice is part of the transaction; PostgreSQL sends several of one transaction as one. A
        group that code has declared and no server has written yet is written now.
        """
        options = {"now": now, "caused_by": caused_by, "trace": trace, "channel": channel}
        if _are_alike(entries):
            return (yield from self._enqueue_alike(entries, options, declared))
        ids: dict[int, int] = {}
        left = dict(enumerate(entries))
        if len(entries) > 1:
            # Of several none is to be written if a key refuses one of them, for the caller may commit all the same.
            yield from self._look_up(ids, left, held)
            if not left:
                return _in_order(ids)
        for _ in range(LOOKUPS):
            rows = yield Call(self._sql["work_queue/enqueue"], _columns(list(left.values())) | options)
            unknown = [row["unknown_group"] for row in rows if row["unknown_group"] is not None]
            if unknown:
                yield from self._write_groups(unknown, declared)
                continue
            _take_written(ids, left, rows)
            yield from self._look_up(ids, left, held)
            if not left:
                return _in_order(ids)
        raise KeyContended(key=next(str(entry.key) for entry in left.values()))

    def _enqueue_alike(
        self, entries: Sequence[NewEntry], options: dict[str, Any], declared: Collection[str]
    ) -> Steps[list[int]]:
        """As `enqueue`, for entries that differ in their input alone: ids rise in their order."""
        first = entries[0]
        terms, inputs = first.terms, [entry.input for entry in entries]
        own = {"inputs": inputs, "priority": first.priority, "delay": first.delay}
        common = {"train": terms.train, "group": terms.group, "train_priority": terms.priority}
        call = Call(self._sql["work_queue/enqueue_alike"], common | terms.policy._asdict() | own | options)
        [row] = yield call
        if row["ids"] is None:
            yield from self._write_groups([terms.group], declared)
            [row] = yield call
        ids: list[int] = row["ids"]
        return ids

    def _look_up(self, ids: dict[int, int], left: dict[int, NewEntry], held: set[int] | None) -> Steps[None]:
        """Who holds the keys of these; raises where that is no answer to the caller."""
        keyed = {place: entry for place, entry in left.items() if entry.key is not None}
        if keyed:
            _refuse_two_trains(keyed.values())
            holders = yield Call(self._sql["work_queue/holders"], {"keys": [entry.key for entry in keyed.values()]})
            _take_held(ids, keyed, holders)
            for place in ids.keys() & left.keys():
                del left[place]
                if held is not None:
                    held.add(ids[place])

    async def follow(self, conn: Connection, first_entry_id: int) -> Lineage | None:
        """How the work that began with this entry is doing; None says that there is no trace of it."""
        row = await self._sql["work_queue/follow"].fetchrow(conn, id=first_entry_id)
        return None if row is None else _lineage(row)

    def _write_groups(self, unknown: Sequence[str], declared: Collection[str]) -> Steps[None]:
        """Write those that are declared; an undeclared one is an error that names those there are."""
        for name in unknown:
            if name not in declared:
                rows = yield Call(self._sql["manifest_group/list"], {})
                raise UnknownGroup(name=name, known=[row["name"] for row in rows])
        yield Call(self._sql["manifest_group/insert"], {"names": sorted(set(unknown))})


def _are_alike(entries: Sequence[NewEntry]) -> bool:
    """Whether nothing but their input tells them apart; terms by identity, because callers reuse them."""
    first = entries[0]
    terms, priority, delay = first.terms, first.priority, first.delay
    for entry in entries:
        if entry.terms is not terms or entry.key is not None or entry.priority != priority or entry.delay != delay:
            return False
    return True


def _columns(entries: Sequence[NewEntry]) -> dict[str, Any]:
    terms = {id(entry.terms): entry.terms for entry in entries}
    numbers = {each: number for number, each in enumerate(terms, 1)}
    return _columns_of_terms(list(terms.values())) | {
        "terms": [numbers[id(entry.terms)] for entry in entries],
        "inputs": [entry.input for entry in entries],
        "priorities": [entry.priority for entry in entries],
        "delays": [entry.delay for entry in entries],
        "keys": [entry.key for entry in entries],
    }


def _columns_of_terms(terms: Sequence[Terms]) -> dict[str, Any]:
    return {
        "trains": [each.train for each in terms],
        "groups": [each.group for each in terms],
        "train_priorities": [each.priority for each in terms],
        "max_attempts": [each.policy.max_attempts for each in terms],
        "max_crashes": [each.policy.max_crashes for each in terms],
        "retry_delays": [each.policy.retry_delay for each in terms],
        "max_retry_delays": [each.policy.max_retry_delay for each in terms],
        "retry_backoffs": [each.policy.retry_backoff for each in terms],
        "timeouts": [each.policy.timeout for each in terms],
    }


def _take_written(ids: dict[int, int], left: dict[int, NewEntry], rows: Iterable[Row]) -> None:
    """Ids rise in the order of the entries; a key tells its own."""
    plain = iter([place for place, entry in left.items() if entry.key is None])
    keyed = {entry.key: place for place, entry in reversed(left.items()) if entry.key is not None}
    for row in rows:
        place = next(plain) if row["key"] is None else keyed[row["key"]]
        ids[place] = row["id"]
    for place in ids.keys() & left.keys():
        del left[place]


def _take_held(ids: dict[int, int], keyed: Mapping[int, NewEntry], holders: Iterable[Row]) -> None:
    """Whoever held a key when it was looked up; a key that was free by then stays left for another try."""
    by_key = {row["key"]: row for row in holders}
    for place, entry in keyed.items():
        holder = by_key[entry.key]
        if holder["isolation"] != READ_COMMITTED:
            raise KeyNeedsReadCommitted(key=holder["key"], isolation=holder["isolation"])
        if holder["id"] is not None:
            _refuse_another_train(entry, holder["train"])
            ids[place] = holder["id"]


def _refuse_two_trains(keyed: Iterable[NewEntry]) -> None:
    """The first of a batch holds a key for the others."""
    first: dict[str | None, NewEntry] = {}
    for entry in keyed:
        _refuse_another_train(entry, first.setdefault(entry.key, entry).terms.train)


def _refuse_another_train(entry: NewEntry, holder: str) -> None:
    if holder not in (entry.terms.train, *entry.terms.aliases):
        raise KeyTaken(key=str(entry.key), train=entry.terms.train, holder=holder)


def _in_order(ids: Mapping[int, int]) -> list[int]:
    return [ids[place] for place in range(len(ids))]


def _lineage(row: Record) -> Lineage:
    entry, execution = row["entry_state"], row["execution_state"]
    return Lineage(
        entry_state=None if entry is None else WorkState(entry),
        entry_failure=row["entry_failure"],
        execution_state=None if execution is None else ExecutionState(execution),
        output=row["output"],
        failure=row["failure"],
        junction=row["junction"],
        error_type=row["error_type"],
        error_message=row["error_message"],
        traceback=row["traceback"],
        dead_letter_id=row["dead_letter_id"],
        dead_letter_reason=row["dead_letter_reason"],
    )
