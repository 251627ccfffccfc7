"""Manifests run out of turn, switched on and off; trains paused and resumed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from interlock.errors import UnknownManifest
from interlock.model.act import Permission
from interlock.model.work import ALL_TRAINS
from interlock.operate.act import Acting
from interlock.operate.terms import terms_of
from interlock.store.switch import Switches
from interlock.trains.names import checked_name
from interlock.trains.options import checked_duration

if TYPE_CHECKING:
    from interlock.operate.act import Act


class SwitchCommands(Acting):
    async def trigger(self, external_id: str, *, delay: timedelta = timedelta(0)) -> int:
        """Queue a run of the manifest out of turn; its own schedule goes on as planned. Answers the entry."""
        checked_name("external_id", external_id)
        checked_duration("delay", delay, zero=True)

        async def work(act: Act) -> int:
            entry = await self._trigger(act, external_id, delay)
            if entry is None:
                raise UnknownManifest(name=external_id)
            after = {"entry_id": str(entry), "delay_seconds": delay.total_seconds()}
            act.changed("trigger", "manifest", external_id, after=after)
            act.wake("work")
            return entry

        return await self._act(Permission.TRIGGER, work)

    async def enable(self, external_id: str) -> bool:
        """Switch a manifest on; answers whether it was off."""
        return await self._switch(external_id, enabled=True)

    async def disable(self, external_id: str) -> bool:
        """Switch a manifest off; answers whether it was on. What waits or runs already goes on."""
        return await self._switch(external_id, enabled=False)

    async def pause(self, train: str = ALL_TRAINS) -> bool:
        """Dispatch nothing more of this train, or of all; answers whether it was running."""
        checked_name("train", train)

        async def work(act: Act) -> bool:
            paused = await Switches(act.sql).pause_if_running(act.conn, train, actor=act.actor.name)
            return _switched(act, "pause", "train", train, {"paused": True}, changed=paused)

        return await self._act(Permission.PAUSE, work)

    async def resume(self, train: str = ALL_TRAINS) -> bool:
        """Take back a pause; answers whether there was one."""
        checked_name("train", train)

        async def work(act: Act) -> bool:
            resumed = await Switches(act.sql).resume_if_paused(act.conn, train)
            return _switched(act, "resume", "train", train, {"paused": False}, changed=resumed)

        return await self._act(Permission.PAUSE, work)

    async def _trigger(self, act: Act, external_id: str, delay: timedelta) -> int | None:
        switches = Switches(act.sql)
        terms = await terms_of(act, self._means, await switches.train_of(act.conn, external_id) or "")
        return await switches.trigger(
            act.conn,
            external_id,
            delay=delay,
            priority=terms.priority,
            policy=terms.policy,
            now=act.now,
        )

    async def _switch(self, external_id: str, *, enabled: bool) -> bool:
        checked_name("external_id", external_id)

        async def work(act: Act) -> bool:
            switches = Switches(act.sql)
            switch = switches.enable_if_disabled if enabled else switches.disable_if_enabled
            changed = await switch(act.conn, external_id, now=act.now)
            if not changed and (await switches.find(act.conn, external_id=external_id)).manifest_id is None:
                raise UnknownManifest(name=external_id)
            verb = "enable" if enabled else "disable"
            return _switched(act, verb, "manifest", external_id, {"enabled": enabled}, changed=changed)

        return await self._act(Permission.SWITCH, work)


def _switched(act: Act, action: str, kind: str, target: str, after: dict[str, bool], *, changed: bool) -> bool:
    if changed:
        before = {name: not value for name, value in after.items()}
        act.changed(action, kind, target, before=before, after=after)
        act.wake("work" if kind == "train" else "manifest")
    return changed
