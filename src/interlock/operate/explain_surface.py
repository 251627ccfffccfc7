"""The calls of an app that look and change nothing: explain, doctor, health, gauges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from interlock.runtime.portal import portal

if TYPE_CHECKING:
    from datetime import timedelta

    from interlock.dispatch.settings import DispatchSettings
    from interlock.locks.locks import Locks
    from interlock.locks.settings import LockSettings
    from interlock.manifests.settings import ManifestSettings
    from interlock.operate.doctor_finding import Finding
    from interlock.operate.explain import Explanation
    from interlock.operate.gauges import Gauges
    from interlock.operate.health import FleetHealth
    from interlock.outbox.settings import OutboxSettings
    from interlock.outbox.surface import Outbox
    from interlock.runtime.clock import Clock
    from interlock.runtime.settings import RuntimeSettings
    from interlock.store.database import Database
    from interlock.store.settings import StoreSettings
    from interlock.timers.registry import TimerRegistry
    from interlock.upkeep.settings import UpkeepSettings
    from interlock.worker.settings import WorkerSettings

POLLS_BEFORE_STALLED = 3


class Sections(Protocol):
    """The settings that an examination reads."""

    @property
    def store(self) -> StoreSettings: ...
    @property
    def runtime(self) -> RuntimeSettings: ...
    @property
    def manifests(self) -> ManifestSettings: ...
    @property
    def dispatch(self) -> DispatchSettings: ...
    @property
    def worker(self) -> WorkerSettings: ...
    @property
    def upkeep(self) -> UpkeepSettings: ...
    @property
    def outbox(self) -> OutboxSettings: ...
    @property
    def locks(self) -> LockSettings: ...


class ExaminedApp(ABC):
    """Nothing here needs a running server, and nothing waits for a lock."""

    settings: Sections
    clock: Clock
    locks: Locks
    timers: TimerRegistry
    outbox: Outbox

    @abstractmethod
    async def adatabase(self) -> Database: ...

    async def aexplain(self, subject: str, *, long_transaction: timedelta | None = None) -> Explanation:
        """Why `execution:42`, `entry:42`, `timer:NAME`, `message:42` or a manifest does not go on."""
        from interlock.operate.explain import Explainer  # noqa: PLC0415  only who asks loads what answers

        manifests = self.settings.manifests
        explainer = Explainer(
            await self.adatabase(),
            settings=self.settings.dispatch,
            stall_after=manifests.manifest_manager_polling_interval * POLLS_BEFORE_STALLED,
            clock=self.clock,
            locks=self.locks,
            timers=self.timers,
            emitters=self.outbox.emitters,
            in_order=self.settings.outbox.outbox_mode != "claim",
            **({} if long_transaction is None else {"long_transaction": long_transaction}),
        )
        return await explainer.explain(subject)

    def explain(self, subject: str) -> Explanation:
        """The blocking twin of `aexplain`."""
        return portal.call(self.aexplain, subject)

    async def adoctor(self) -> list[Finding]:
        """What looks wrong with the database, the fleet and the settings; empty when all is well."""
        from interlock.operate.doctor import examine  # noqa: PLC0415  see aexplain

        return await examine(await self.adatabase(), self.settings)

    def doctor(self) -> list[Finding]:
        """The blocking twin of `adoctor`."""
        return portal.call(self.adoctor)

    async def ahealth(self, *, server: str | None = None) -> FleetHealth:
        """Whether the fleet works, or one server of it by its name."""
        from interlock.operate.health import FleetHealth, check_locks, read_health  # noqa: PLC0415  see aexplain

        health = await read_health(await self.adatabase(), server=server, now=self.clock.injected())
        if server is not None or self.settings.locks.lock_backend != "redis":
            return health
        return FleetHealth([*health.checks, check_locks(await self.locks.ahealth())])

    def health(self, *, server: str | None = None) -> FleetHealth:
        """The blocking twin of `ahealth`."""
        return portal.call(self.ahealth, server=server)

    async def agauges(self) -> Gauges:
        """How much waits, what runs and who is there, at this moment."""
        from interlock.operate.gauges import read_gauges  # noqa: PLC0415  see aexplain

        return await read_gauges(await self.adatabase(), now=self.clock.injected())

    def gauges(self) -> Gauges:
        """The blocking twin of `agauges`."""
        return portal.call(self.agauges)
