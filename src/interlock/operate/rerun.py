"""An execution run again, with its own or an edited input, and work that people enqueue by the name of its train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from interlock.errors import NotEnded, UnknownWork
from interlock.model.act import Permission
from interlock.model.bounds import checked_id
from interlock.model.work import DEFAULT_GROUP, NewEntry, Terms
from interlock.observe.events.work import WorkEnqueued
from interlock.operate.act import Acting
from interlock.operate.arguments import encoded_input, known_train
from interlock.operate.terms import terms_of
from interlock.store.adapters.asyncpg import AsyncpgAdapter
from interlock.store.adapters.protocol import run
from interlock.store.rerun import Reruns
from interlock.store.work_queue import WorkQueue
from interlock.trains.names import checked_name
from interlock.trains.options import checked_duration, checked_priority

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from interlock.operate.act import Act
    from interlock.store.known_train import KnownTrain


class Queued(NamedTuple):
    entry_id: int
    is_new: bool = True
    """False: an earlier one holds the key, and nothing was written."""


class RerunCommands(Acting):
    async def rerun(self, execution_id: int, *, input: Mapping[str, Any] | None = None) -> int:  # noqa: A002  the column's own word
        """Queue an ended execution again, from its first attempt; answers the entry, which names what it repeats."""
        checked_id("execution_id", execution_id)

        async def work(act: Act) -> int:
            reruns = Reruns(act.sql)
            found = await reruns.read(act.conn, execution_id)
            if found is None:
                raise UnknownWork(name=str(execution_id))
            edited = None if input is None else await self._checked(act, found.train, input)
            terms = await terms_of(act, self._means, found.train)
            entry = await reruns.queue_if_ended(
                act.conn, execution_id, input=edited, priority=terms.priority, now=act.now
            )
            if entry is None:
                raise NotEnded(execution_id=execution_id, state=found.state)
            before = None if edited is None else {"input": msgspec.Raw(found.input.encode())}
            after = {"entry_id": str(entry)} | ({} if edited is None else {"input": msgspec.Raw(edited.encode())})
            act.changed("rerun", "execution", execution_id, before=before, after=after)
            act.wake("work")
            return entry

        return await self._act(Permission.RERUN, work)

    async def enqueue(
        self,
        train: str,
        arguments: Mapping[str, Any],
        *,
        delay: timedelta | None = None,
        priority: int | None = None,
        key: str | None = None,
        group: str | None = None,
    ) -> Queued:
        """Queue a run of a train that this code, or some server, knows; answers the entry, of a held key its holder."""
        if delay is not None:
            checked_duration("delay", delay, zero=True)
        checked_priority(priority)
        if key is not None:
            checked_name("key", key)
        if group is not None:
            checked_name("group", group)

        async def work(act: Act) -> Queued:
            known = await known_train(act.conn, act.sql, self._means.declarations.trains, train)
            text = self._encoded(known, arguments)
            entry = NewEntry(await self._terms(act, known, group), text, priority, delay or None, key)
            declared = {*self._means.declarations.groups, *([known.group] if known.group else [])}
            held = set[int]()
            steps = WorkQueue(act.sql).enqueue([entry], now=act.now, declared=declared, held=held)
            [entry_id] = await run(AsyncpgAdapter(act.conn), steps)
            if held:
                return Queued(entry_id, is_new=False)
            act.changed("enqueue", "train", known.name, after={"entry_id": str(entry_id)})
            act.events.append(WorkEnqueued(entry_id=entry_id, train=known.name, kind="adhoc"))
            act.wake("work")
            return Queued(entry_id)

        return await self._act(Permission.ENQUEUE, work)

    async def _checked(self, act: Act, train: str, value: Mapping[str, Any]) -> str:
        known = await known_train(act.conn, act.sql, self._means.declarations.trains, train)
        return self._encoded(known, value)

    def _encoded(self, train: KnownTrain, value: Mapping[str, Any]) -> str:
        trains, limit = self._means.declarations.trains, self._means.max_input_bytes
        return encoded_input(train, dict(value), trains, limit=limit)

    async def _terms(self, act: Act, train: KnownTrain, group: str | None) -> Terms:
        own = await terms_of(act, self._means, train.name)
        return Terms(
            train=train.name,
            aliases=train.aliases,
            group=group or train.group or DEFAULT_GROUP,
            priority=own.priority,
            policy=own.policy,
        )
