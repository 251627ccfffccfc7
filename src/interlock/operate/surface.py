"""The calls of an app that change what its servers do: trigger, switch, pause, cancel, re-run, group settings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.model.act import actor_named
from interlock.model.work import ALL_TRAINS
from interlock.operate.group import UNSET
from interlock.runtime.portal import portal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.manifests.declare import Declarations
    from interlock.model.act import Actor
    from interlock.model.execution import Policy
    from interlock.observe.bus import Bus
    from interlock.operate.commands import Commands
    from interlock.operate.group import GroupChange, Unset
    from interlock.operate.views import Views
    from interlock.runtime.clock import Clock
    from interlock.store.cancellation import Cancelled
    from interlock.store.database import Database
    from interlock.trains.options import TrainOptions


class OperatingApp(ABC):
    """Each call is one transaction; it answers what it changed, and a second call of the same changes nothing."""

    events: Bus
    clock: Clock
    declarations: Declarations

    @property
    @abstractmethod
    def _app_name(self) -> str | None: ...

    @abstractmethod
    async def adatabase(self) -> Database: ...

    @abstractmethod
    def default_policy(self) -> Policy: ...

    @abstractmethod
    def _max_input_bytes(self) -> int: ...

    @abstractmethod
    def train_options(self, train: str) -> TrainOptions | None: ...

    @property
    def commands(self) -> Commands:
        """Every command, on behalf of code; `commands.by(actor, note=…)` acts for somebody else."""
        from interlock.operate.act import Means  # noqa: PLC0415  only who commands or looks loads what serves it
        from interlock.operate.commands import Commands  # noqa: PLC0415  see above

        means = Means(
            database=self.adatabase,
            clock=self.clock,
            emit=self.events.emit,
            policy=self.default_policy(),
            train_options=self.train_options,
            declarations=self.declarations,
            app=self._app_name,
            max_input_bytes=self._max_input_bytes(),
        )
        return Commands(means)

    @property
    def views(self) -> Views:
        """Every list and detail, as code may see them; `views.seen_by(actor)` checks that somebody else may."""
        from interlock.operate.views import Views  # noqa: PLC0415  see commands

        return Views(self.adatabase, clock=self.clock)

    async def atrigger(
        self,
        external_id: str,
        *,
        delay: timedelta = timedelta(0),
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> int:
        """Queue a run of the manifest out of turn; its own schedule goes on as planned. Answers the entry."""
        return await self._by(actor, note).trigger(external_id, delay=delay)

    async def aenable(self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """Switch a manifest on; answers whether it was off."""
        return await self._by(actor, note).enable(external_id)

    async def adisable(self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """Switch a manifest off; answers whether it was on. What waits or runs already goes on: `acancel` ends it."""
        return await self._by(actor, note).disable(external_id)

    async def apause(
        self, train: str = ALL_TRAINS, *, actor: Actor | str | None = None, note: str | None = None
    ) -> bool:
        """Dispatch nothing more of this train, or of all; answers whether it was running."""
        return await self._by(actor, note).pause(train)

    async def aresume(
        self, train: str = ALL_TRAINS, *, actor: Actor | str | None = None, note: str | None = None
    ) -> bool:
        """Take back a pause; answers whether there was one."""
        return await self._by(actor, note).resume(train)

    async def acancel(
        self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None
    ) -> Cancelled:
        """End everything of a manifest that waits or runs; its schedule goes on."""
        return await self._by(actor, note).cancel_manifest(external_id)

    async def acancel_group(self, name: str, *, actor: Actor | str | None = None, note: str | None = None) -> Cancelled:
        """End everything in a manifest group that waits or runs."""
        return await self._by(actor, note).cancel_group(name)

    async def acancel_execution(
        self, execution_id: int, *, actor: Actor | str | None = None, note: str | None = None
    ) -> Cancelled:
        """End this run and the attempts that would follow it."""
        return await self._by(actor, note).cancel_execution(execution_id)

    async def acancel_entry(
        self, entry_id: int, *, actor: Actor | str | None = None, note: str | None = None
    ) -> Cancelled:
        """End the work of this entry (the id of a handle), whatever attempt it is at."""
        return await self._by(actor, note).cancel_entry(entry_id)

    async def arerun(
        self,
        execution_id: int,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  the column's own word
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> int:
        """Queue an ended execution again, with its own or another input; answers the entry."""
        return await self._by(actor, note).rerun(execution_id, input=input)

    async def aset_group(
        self,
        name: str,
        *,
        max_active_jobs: int | Unset | None = UNSET,
        priority: int | None = None,
        enabled: bool | None = None,
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> GroupChange:
        """Change the cap (None: no cap), the priority or the switch of a group; it survives deploys."""
        return await self._by(actor, note).set_group(
            name, max_active_jobs=max_active_jobs, priority=priority, enabled=enabled
        )

    def trigger(
        self,
        external_id: str,
        *,
        delay: timedelta = timedelta(0),
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> int:
        """The blocking twin of `atrigger`."""
        return portal.call(self.atrigger, external_id, delay=delay, actor=actor, note=note)

    def enable(self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """The blocking twin of `aenable`."""
        return portal.call(self.aenable, external_id, actor=actor, note=note)

    def disable(self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """The blocking twin of `adisable`."""
        return portal.call(self.adisable, external_id, actor=actor, note=note)

    def pause(self, train: str = ALL_TRAINS, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """The blocking twin of `apause`."""
        return portal.call(self.apause, train, actor=actor, note=note)

    def resume(self, train: str = ALL_TRAINS, *, actor: Actor | str | None = None, note: str | None = None) -> bool:
        """The blocking twin of `aresume`."""
        return portal.call(self.aresume, train, actor=actor, note=note)

    def cancel(self, external_id: str, *, actor: Actor | str | None = None, note: str | None = None) -> Cancelled:
        """The blocking twin of `acancel`."""
        return portal.call(self.acancel, external_id, actor=actor, note=note)

    def cancel_group(self, name: str, *, actor: Actor | str | None = None, note: str | None = None) -> Cancelled:
        """The blocking twin of `acancel_group`."""
        return portal.call(self.acancel_group, name, actor=actor, note=note)

    def cancel_execution(
        self, execution_id: int, *, actor: Actor | str | None = None, note: str | None = None
    ) -> Cancelled:
        """The blocking twin of `acancel_execution`."""
        return portal.call(self.acancel_execution, execution_id, actor=actor, note=note)

    def cancel_entry(self, entry_id: int, *, actor: Actor | str | None = None, note: str | None = None) -> Cancelled:
        """The blocking twin of `acancel_entry`."""
        return portal.call(self.acancel_entry, entry_id, actor=actor, note=note)

    def rerun(
        self,
        execution_id: int,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  see arerun
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> int:
        """The blocking twin of `arerun`."""
        return portal.call(self.arerun, execution_id, input=input, actor=actor, note=note)

    def set_group(
        self,
        name: str,
        *,
        max_active_jobs: int | Unset | None = UNSET,
        priority: int | None = None,
        enabled: bool | None = None,
        actor: Actor | str | None = None,
        note: str | None = None,
    ) -> GroupChange:
        """The blocking twin of `aset_group`."""
        return portal.call(
            self.aset_group,
            name,
            max_active_jobs=max_active_jobs,
            priority=priority,
            enabled=enabled,
            actor=actor,
            note=note,
        )

    def _by(self, actor: Actor | str | None, note: str | None) -> Commands:
        return self.commands.by(actor_named(actor), note=note)
