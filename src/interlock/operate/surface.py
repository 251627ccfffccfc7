"""The calls of an app that change what its servers do: trigger, switch, pause, cancel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from interlock.errors import UnknownManifest
from interlock.operate.cancel import Cancelling
from interlock.runtime.portal import portal
from interlock.store.notify import notify_in
from interlock.store.switch import ALL_TRAINS, Switches
from interlock.trains.options import checked_duration
from interlock.worker.activate import policy_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.model.execution import Policy
    from interlock.observe.bus import Bus
    from interlock.runtime.clock import Clock
    from interlock.store.cancellation import Cancelled
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.trains.options import TrainOptions

T = TypeVar("T")


class OperatingApp:
    """Each call is one transaction; it answers what it changed, and a second call of the same changes nothing."""

    events: Bus
    clock: Clock

    async def adatabase(self) -> Database:
        raise NotImplementedError

    def _default_policy(self) -> Policy:
        raise NotImplementedError

    def _train_options(self, train: str) -> TrainOptions | None:
        raise NotImplementedError

    async def atrigger(self, external_id: str, *, delay: timedelta = timedelta(0)) -> int:
        """Queue a run of the manifest out of turn; its own schedule goes on as planned. Answers the entry."""
        checked_duration("delay", delay, zero=True)

        async def work(conn: Connection, switches: Switches) -> int | None:
            options = self._train_options(await switches.train_of(conn, external_id) or "")
            default = self._default_policy()
            return await switches.trigger(
                conn,
                external_id,
                delay=delay,
                priority=None if options is None else options.priority,
                policy=default if options is None else policy_of(options, default),
                now=self.clock.injected(),
            )

        entry = await self._switch(work, "work")
        if entry is None:
            raise UnknownManifest(name=external_id)
        return entry

    async def aenable(self, external_id: str) -> bool:
        """Switch a manifest on; answers whether it was off."""
        now = self.clock.injected()
        changed = await self._switch(lambda conn, s: s.enable_if_disabled(conn, external_id, now=now), "manifest")
        return changed or await self._known(external_id)

    async def adisable(self, external_id: str) -> bool:
        """Switch a manifest off; answers whether it was on. What waits or runs already goes on: `acancel` ends it."""
        now = self.clock.injected()
        changed = await self._switch(lambda conn, s: s.disable_if_enabled(conn, external_id, now=now), "manifest")
        return changed or await self._known(external_id)

    async def apause(self, train: str = ALL_TRAINS, *, actor: str | None = None) -> bool:
        """Dispatch nothing more of this train, or of all; answers whether it was running."""
        return await self._switch(lambda conn, s: s.pause_if_running(conn, train, actor=actor), "work")

    async def aresume(self, train: str = ALL_TRAINS) -> bool:
        """Take back a pause; answers whether there was one."""
        return await self._switch(lambda conn, s: s.resume_if_paused(conn, train), "work")

    async def acancel(self, external_id: str, *, actor: str | None = None) -> Cancelled:
        """End everything of a manifest that waits or runs; its schedule goes on."""
        return await (await self._cancelling(actor)).manifest(external_id)

    async def acancel_group(self, name: str, *, actor: str | None = None) -> Cancelled:
        """End everything in a manifest group that waits or runs."""
        return await (await self._cancelling(actor)).group(name)

    async def acancel_execution(self, execution_id: int, *, actor: str | None = None) -> Cancelled:
        """End this run and the attempts that would follow it."""
        return await (await self._cancelling(actor)).work(execution_id=execution_id)

    async def acancel_entry(self, entry_id: int, *, actor: str | None = None) -> Cancelled:
        """End the work of this entry (the id of a handle), whatever attempt it is at."""
        return await (await self._cancelling(actor)).work(entry_id=entry_id)

    def trigger(self, external_id: str, *, delay: timedelta = timedelta(0)) -> int:
        """The blocking twin of `atrigger`."""
        return portal.call(self.atrigger, external_id, delay=delay)

    def enable(self, external_id: str) -> bool:
        """The blocking twin of `aenable`."""
        return portal.call(self.aenable, external_id)

    def disable(self, external_id: str) -> bool:
        """The blocking twin of `adisable`."""
        return portal.call(self.adisable, external_id)

    def pause(self, train: str = ALL_TRAINS, *, actor: str | None = None) -> bool:
        """The blocking twin of `apause`."""
        return portal.call(self.apause, train, actor=actor)

    def resume(self, train: str = ALL_TRAINS) -> bool:
        """The blocking twin of `aresume`."""
        return portal.call(self.aresume, train)

    def cancel(self, external_id: str, *, actor: str | None = None) -> Cancelled:
        """The blocking twin of `acancel`."""
        return portal.call(self.acancel, external_id, actor=actor)

    def cancel_group(self, name: str, *, actor: str | None = None) -> Cancelled:
        """The blocking twin of `acancel_group`."""
        return portal.call(self.acancel_group, name, actor=actor)

    def cancel_execution(self, execution_id: int, *, actor: str | None = None) -> Cancelled:
        """The blocking twin of `acancel_execution`."""
        return portal.call(self.acancel_execution, execution_id, actor=actor)

    def cancel_entry(self, entry_id: int, *, actor: str | None = None) -> Cancelled:
        """The blocking twin of `acancel_entry`."""
        return portal.call(self.acancel_entry, entry_id, actor=actor)

    async def _switch(self, work: Callable[[Connection, Switches], Awaitable[T]], topic: str) -> T:
        database = await self.adatabase()
        switches = Switches(database.sql)

        async def switch(conn: Connection) -> T:
            answer = await work(conn, switches)
            if answer:
                await notify_in(conn, database, [topic])
            return answer

        return await database.retrying(switch)

    async def _known(self, external_id: str) -> bool:
        """False: it was as asked for already; raises if there is no such manifest."""
        database = await self.adatabase()
        async with database.connection() as conn:
            found = await Switches(database.sql).find(conn, external_id=external_id)
        if found.manifest_id is None:
            raise UnknownManifest(name=external_id)
        return False

    async def _cancelling(self, actor: str | None) -> Cancelling:
        return Cancelling(await self.adatabase(), clock=self.clock, emit=self.events.emit, actor=actor)
