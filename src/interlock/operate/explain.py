"""Why something does not run: a subject, how far it has come, and what blocks it, in order.

The facts are read in a handful of statements, each bounded by an index or a limit, on one connection outside any
transaction. They may be a moment apart from each other: an explanation is for a person, who can ask again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.errors import (
    InvalidOption,
    LockServiceUnavailable,
    UnknownManifest,
    UnknownMessage,
    UnknownTimer,
    UnknownWork,
)
from interlock.operate.blockers import blockers_of
from interlock.operate.blockers.facts import Facts, Phase, TimerFacts
from interlock.operate.blockers.storage import skew_of
from interlock.operate.explain_standing import standing_of
from interlock.outbox.reach import emits, keeps_order
from interlock.store import migrate
from interlock.store.explaining import Explaining
from interlock.store.migrate import SchemaState
from interlock.store.timer import Timers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.dispatch.settings import DispatchSettings
    from interlock.errors import InterlockError
    from interlock.locks.locks import Locks
    from interlock.operate.blockers import Blocker
    from interlock.outbox.emitter import Emitters
    from interlock.runtime.clock import Clock
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.explaining import EntryFacts, ExecutionFacts, ManifestFacts
    from interlock.timers.registry import TimerRegistry

LONG = timedelta(minutes=1)
LARGEST_ID = 2**63 - 1
KINDS = ("execution", "entry", "timer", "message", "manifest")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What was asked about, how it stands in one sentence, and what blocks it; no blockers: nothing does."""

    subject: str
    standing: str
    blockers: Sequence[Blocker]


class Explainer:
    def __init__(
        self,
        database: Database,
        *,
        settings: DispatchSettings,
        stall_after: timedelta,
        clock: Clock,
        locks: Locks,
        timers: TimerRegistry,
        emitters: Emitters,
        in_order: bool = False,
        long_transaction: timedelta = LONG,
    ) -> None:
        self._database, self._settings, self._stall_after = database, settings, stall_after
        self._clock, self._locks, self._timers, self._long = clock, locks, timers, long_transaction
        self._emitters, self._in_order = emitters, in_order
        self._look = Explaining(database.sql)

    async def explain(self, subject: str) -> Explanation:
        """Of `execution:42`, `entry:42`, `timer:NAME`, `message:42`, `manifest:NAME`, or just a manifest's name."""
        kind, name = parse_subject(subject)
        async with self._database.connection() as conn:
            schema = await migrate.status(conn, self._database.settings.schema)
            if schema.state in (SchemaState.TOO_OLD, SchemaState.TOO_NEW):
                skew = skew_of(schema)
                return Explanation(subject, "the tables cannot be read by this version", [skew] if skew else [])
            schema.ensure_usable()
            try:
                facts = await self._facts(conn, kind, name, schema)
            except UnknownManifest:
                raise _unknown(subject, name) from None
        return Explanation(subject, standing_of(facts), blockers_of(facts))

    async def _facts(self, conn: Connection, kind: str, name: str, schema: migrate.SchemaStatus) -> Facts:
        match kind:
            case "execution":
                return await self._of_work(conn, schema, execution_id=_number(kind, name))
            case "entry":
                return await self._of_work(conn, schema, entry_id=_number(kind, name))
            case "timer":
                return await self._of_timer(conn, schema, name)
            case "message":
                return await self._of_message(conn, schema, name)
            case _:
                return await self._of_manifest(conn, schema, name)

    async def _of_manifest(self, conn: Connection, schema: migrate.SchemaStatus, name: str) -> Facts:
        manifest = await self._look.manifest(conn, external_id=name)
        if manifest is None:
            raise UnknownManifest(name=name)
        entry = None if manifest.entry_id is None else await self._look.entry(conn, id=manifest.entry_id)
        active = manifest.execution_id
        execution = None if active is None else await self._look.execution(conn, id=active)
        facts = await self._around(conn, schema, manifest=manifest, entry=entry, execution=execution)
        return await self._with_rivals(conn, replace(facts, asked_for_manifest=True))

    async def _of_work(
        self,
        conn: Connection,
        schema: migrate.SchemaStatus,
        *,
        execution_id: int | None = None,
        entry_id: int | None = None,
    ) -> Facts:
        """Whatever became of it: a retry of the execution that was asked about is what people want to know of."""
        lineage = await self._look.lineage(conn, execution_id=execution_id, entry_id=entry_id)
        if lineage is None:
            raise UnknownWork(name=str(execution_id if entry_id is None else entry_id))
        entry = await self._look.entry(conn, lineage=lineage)
        execution = await self._look.execution(conn, lineage=lineage)
        found = entry or execution
        of = None if found is None else found.manifest_id
        manifest = None if of is None else await self._look.manifest(conn, id=of)
        facts = await self._around(conn, schema, manifest=manifest, entry=entry, execution=execution)
        return await self._with_rivals(conn, facts)

    async def _of_timer(self, conn: Connection, schema: migrate.SchemaStatus, name: str) -> Facts:
        rows = await Timers(self._database.sql, self._timers.namespace).list(conn, name)
        if not rows:
            raise UnknownTimer(name=name)
        declared = next((timer for timer in self._timers.declared if timer.name == name), None)
        exclusions, zone = ((), "UTC") if declared is None else (tuple(declared.exclude), declared.tz)
        timer = TimerFacts(row=rows[0], holders=None, exclusions=exclusions, time_zone=zone)
        try:
            timer = replace(timer, holders=await self._locks.aholders(f"timer:{name}"))
        except LockServiceUnavailable as error:
            timer = replace(timer, lock_error=str(error))
        return replace(await self._around(conn, schema), timer=timer)

    async def _of_message(self, conn: Connection, schema: migrate.SchemaStatus, name: str) -> Facts:
        message = await self._look.message(conn, name)
        if message is None:
            raise UnknownMessage(name=name)
        hold = self._emitters.hold_behind_dead(message.topic)
        # Servers go by their own settings, which this process need not share.
        drains = [tags for tags in json.loads(message.drains) if emits(tags, message.topic)]
        in_order = any(map(keeps_order, drains)) if drains else self._in_order
        return replace(await self._around(conn, schema), message=message, in_order=in_order, dead_hold=hold)

    async def _around(
        self,
        conn: Connection,
        schema: migrate.SchemaStatus,
        *,
        manifest: ManifestFacts | None = None,
        entry: EntryFacts | None = None,
        execution: ExecutionFacts | None = None,
    ) -> Facts:
        found = entry or execution or manifest
        around = await self._look.surroundings(
            conn,
            train=None if found is None else found.train,
            group_id=None if found is None else found.group_id,
            excluded=self._settings.exclude_from_max_active_jobs,
            now=self._clock.injected(),
        )
        # Servers obey their own settings, which this process need not share; its own count where none lives.
        cap = around.fleet_cap if around.dispatchers else self._settings.max_active_jobs
        return Facts(
            around=around,
            schema=schema,
            manifest=manifest,
            entry=entry,
            execution=execution,
            transactions=await self._look.transactions(conn, older_than=self._long),
            max_active_jobs=cap,
            uncounted_trains=around.uncounted,
            stall_after=self._stall_after,
        )

    async def _with_rivals(self, conn: Connection, facts: Facts) -> Facts:
        """Who comes first, and who uses up the cap; asked only when it can matter."""
        around = facts.around
        match facts.phase, facts.entry, facts.execution:
            case Phase.QUEUED, entry, _ if entry is not None:
                full = around.group_cap is not None and around.group_active >= around.group_cap
                holders = await self._look.holders(conn, entry.group_id) if full else []
                ahead = await self._look.ahead_of_entry(conn, entry, around.rivals) if entry.ready else 0
                return replace(facts, ahead=ahead, holders=holders)
            case Phase.DISPATCHED, _, execution if execution is not None and execution.offered:
                return replace(facts, ahead=await self._look.ahead_of_job(conn, execution, around.rivals))
        return facts


def parse_subject(subject: str) -> tuple[str, str]:
    """Kind and name; what has no known kind in front of it is the name of a manifest."""
    kind, colon, name = subject.partition(":")
    if colon and kind in KINDS:
        if not name:
            raise InvalidOption(option="subject", found=subject, expected=f"{kind}: with something after it")
        return kind, name
    return "manifest", subject


def _unknown(subject: str, name: str) -> InterlockError:
    """A number alone is meant for something that has one."""
    if subject.isdecimal():
        expected = f"execution:{name}, entry:{name}, message:{name} or the id of a manifest"
        return InvalidOption(option="subject", found=name, expected=expected)
    return UnknownManifest(name=name)


def _number(kind: str, name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise InvalidOption(option="subject", found=f"{kind}:{name}", expected=f"a number, for example {kind}:42")
    if int(name) > LARGEST_ID:
        raise UnknownWork(name=name)
    return int(name)
