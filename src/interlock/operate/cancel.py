"""Cancelling work that waits or runs, by manifest, by group, by execution or by entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import UnknownGroup, UnknownManifest, UnknownWork
from interlock.model.act import Permission
from interlock.model.bounds import checked_id
from interlock.model.execution import Scope
from interlock.observe.events.work import CancelRequested
from interlock.operate.act import Acting
from interlock.store.cancellation import Cancellations
from interlock.store.switch import Switches
from interlock.trains.names import checked_name
from interlock.worker.report import named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from interlock.operate.act import Act
    from interlock.store.cancellation import Cancelled

IDS_IN_AUDIT = 100


class CancelCommands(Acting):
    async def cancel_manifest(self, external_id: str) -> Cancelled:
        """End everything of this manifest that waits or runs; its schedule goes on."""
        checked_name("external_id", external_id)

        async def work(act: Act) -> Cancelled:
            found = await Switches(act.sql).find(act.conn, external_id=external_id)
            if found.manifest_id is None:
                raise UnknownManifest(name=external_id)
            return await _cancel(act, Scope(manifest_id=found.manifest_id), "manifest", external_id)

        return await self._act(Permission.CANCEL, work)

    async def cancel_group(self, name: str) -> Cancelled:
        """End everything in this group that waits or runs."""
        checked_name("group", name)

        async def work(act: Act) -> Cancelled:
            found = await Switches(act.sql).find(act.conn, group=name)
            if found.group_id is None:
                raise UnknownGroup(name=name)
            return await _cancel(act, Scope(group_id=found.group_id), "group", name)

        return await self._act(Permission.CANCEL, work)

    async def cancel_execution(self, execution_id: int) -> Cancelled:
        """End this run and the attempts that would follow it."""
        return await self._cancel_work("execution", execution_id)

    async def cancel_entry(self, entry_id: int) -> Cancelled:
        """End the work of this entry (the id of a handle), whatever attempt it is at."""
        return await self._cancel_work("entry", entry_id)

    async def _cancel_work(self, kind: str, number: int) -> Cancelled:
        checked_id(f"{kind}_id", number)

        async def work(act: Act) -> Cancelled:
            lineage = await Cancellations(act.sql).lineage(act.conn, **{f"{kind}_id": number})
            if lineage is None:
                raise UnknownWork(name=str(number))
            return await _cancel(act, Scope(lineage=lineage), kind, str(number))

        return await self._act(Permission.CANCEL, work)


async def _cancel(act: Act, scope: Scope, kind: str, target: str) -> Cancelled:
    cancelled = await Cancellations(act.sql).cancel(act.conn, scope, actor=act.actor.name, now=act.now)
    act.wake(*named("cancel", cancelled.asked), *named("ended", cancelled.lineages))
    if cancelled.entries or cancelled.ended:
        act.wake("work", "manifest")
    if cancelled.entries or cancelled.ended or cancelled.asked:
        act.changed("cancel", kind, target, after=_kept(cancelled))
    act.events.append(
        CancelRequested(
            actor=act.actor.name,
            entries=len(cancelled.entries),
            ended=len(cancelled.ended),
            asked=len(cancelled.asked),
        )
    )
    return cancelled


def _kept(cancelled: Cancelled) -> dict[str, Any]:
    return {
        "entries": _some(cancelled.entries),
        "ended": _some(cancelled.ended),
        "asked_to_stop": _some(cancelled.asked),
    }


def _some(ids: Sequence[int]) -> dict[str, Any]:
    """How many, and the first of them: a group may hold a million."""
    return {"count": len(ids), "ids": [str(one) for one in ids[:IDS_IN_AUDIT]]}
