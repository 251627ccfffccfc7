"""What one server of an app is made of: every component, wired to those it must meet.

Loaded when a server starts. A client, which only enqueues, publishes and asks, never pays for it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from interlock.assembly.work import DISPATCHING, WorkParts, slots_of
from interlock.dispatch.submitters.inline import InlineSubmitter
from interlock.locks.retention import LockRetention
from interlock.manifests.entry_policy import EntryPolicies
from interlock.manifests.manager import ManifestManager
from interlock.manifests.seed import Seeding, SeedingComponent
from interlock.model.server import Role
from interlock.outbox.component import DrainComponent
from interlock.outbox.open import open_drain, server_tags
from interlock.outbox.retention import OutboxRetention
from interlock.outbox.watch import OutboxWatch
from interlock.runtime.keeper import Keeper
from interlock.runtime.loop import Loop
from interlock.runtime.notices import NoticeComponent, NotifierComponent
from interlock.runtime.server import describe_server
from interlock.runtime.supervisor import LoopComponent, Supervisor
from interlock.store.listen import NoticeHub
from interlock.store.notify import Notifier
from interlock.timers.component import TimerComponent
from interlock.upkeep.retention import Retention
from interlock.upkeep.sweep import Sweep
from interlock.worker.recover import Recovery
from interlock.worker.worked import work_and_tell

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from interlock.app import Interlock
    from interlock.model.server import ServerProfile
    from interlock.outbox.drain import Drain
    from interlock.runtime.supervisor import Component
    from interlock.store.database import Database
    from interlock.web.probes import Around
    from interlock.web.runner import Listening


class Assembly:
    """The parts of one server; nothing is started yet."""

    def __init__(
        self, app: Interlock, database: Database, roles: frozenset[Role], runner: Listening | None = None
    ) -> None:
        self._app, self._database, self._settings, self._runner = app, database, app.settings, runner
        self._emit, self._clock = app.events.emit, app.clock
        self.keeper = Keeper(database, self._profile(roles), self._settings.runtime, emit=self._emit)
        self._work = WorkParts(app, database, self.keeper)

    def supervisor(self, probes: Around | None = None) -> Supervisor:
        components = self._components()
        return self._supervise(components if probes is None else probes(self.keeper, components))

    @asynccontextmanager
    async def stepping(self, *, inline: bool) -> AsyncGenerator[Mapping[str, Callable[[], Awaitable[Any]]], None]:
        """The tick of each role by its name; nothing ticks by itself."""
        hooks, notifier = self._work.hooks(), Notifier(self._database, emit=self._emit)
        supervisor = self._supervise([self.keeper, self._seeding(), *self._work.resources(hooks)])
        worker = self._work.worker(notifier.notify, slots_of(self._app), hooks)
        work = partial(work_and_tell, worker, hooks)
        local, remote = (InlineSubmitter(work), ()) if inline else (None, tuple(self._app.routes))
        dispatcher = self._work.dispatcher(worker, notifier.notify, local, remote=remote)
        drain, timers = self._drain(), self._timers()
        await supervisor.start()
        try:
            ticks = self._ticks()
            ticks |= {"dispatch": dispatcher.tick, "worker": work}
            ticks |= {"outbox": drain.step, "timers": timers.step}
            yield ticks
        finally:
            await timers.cancel()
            await drain.close()
            await drain.abandon()
            await worker.aclose()
            await dispatcher.close()
            await notifier.close()
            await supervisor.stop()

    def _profile(self, roles: frozenset[Role]) -> ServerProfile:
        slots, delivers = slots_of(self._app), self._delivers(roles)
        dispatch = self._settings.dispatch.naming(self._app.trains)
        works, dispatches = bool(roles & {Role.WORKER, Role.RUNNER}), bool(roles & DISPATCHING)
        return describe_server(
            self._settings.runtime,
            roles=roles if delivers else roles - {Role.OUTBOX},
            trains=slots.trains if works else self._app.trains.names(),
            tags=(
                *((*slots.tags, *slots.limit_tags) if works else ()),
                *((*self._app.routes.tags, *dispatch.tags) if dispatches else ()),
                *(server_tags(self._settings.outbox, self._app.outbox.emitters) if delivers else ()),
            ),
            slots=slots.total if works else 0,
        )

    def _delivers(self, roles: frozenset[Role]) -> bool:
        return Role.OUTBOX in roles and self._settings.outbox.outbox_enabled and len(self._app.outbox.emitters) > 0

    def _supervise(self, components: Sequence[Component]) -> Supervisor:
        return Supervisor(components, emit=self._emit, shutdown_timeout=self._settings.runtime.shutdown_timeout)

    def _ticks(self) -> dict[str, Callable[[], Awaitable[Any]]]:
        """The ticks that hold nothing of their own, by name."""
        manager, sweep = manager_of(self._app, self._database), self._sweep()
        ticks = {"manifests": manager.tick, "recovery": self._recovery().step, "sweep": sweep.step}
        return {**ticks, "retention": retention_of(self._app, self._database).step}

    def _components(self) -> Sequence[Component]:
        """In the order of their start: what comes later relies on what comes before."""
        notifier, hub = Notifier(self._database, emit=self._emit), NoticeHub(self._database, emit=self._emit)
        roles = self.keeper.profile.roles
        return [
            self.keeper,
            NotifierComponent(notifier),
            self._seeding(),
            NoticeComponent(hub, emit=self._emit),
            self._looped(self._recovery(notifier.notify)),
            self._looped(retention_of(self._app, self._database)),
            self._looped(LockRetention(self._database)),
            self._looped(self._sweep()),
            *([self._manager_loop(hub)] if Role.MANIFESTS in roles else []),
            *self._work.components(notifier, hub),
            *([] if self._runner is None else self._work.runner(self._runner, notifier, hub)),
            *([self._timers()] if Role.TIMERS in roles else []),
            *self._outbox_components(hub),
        ]

    def _looped(self, part: Recovery | Retention | LockRetention | Sweep | OutboxRetention | OutboxWatch) -> Component:
        return LoopComponent(Loop(part.name, part.tick, emit=self._emit))

    def _manager_loop(self, hub: NoticeHub) -> Component:
        manager = manager_of(self._app, self._database)
        loop = Loop(manager.name, manager.run, emit=self._emit)
        hub.subscribe("manifest", lambda _: loop.wake())
        return LoopComponent(loop)

    def _sweep(self) -> Sweep:
        return Sweep(self._database, emit=self._emit, clock=self._clock)

    def _timers(self) -> TimerComponent:
        return TimerComponent(
            self._app.timers,
            self._database,
            self._app.locks,
            app=self._settings.runtime.name,
            server=self.keeper.profile.name,
            distributed=self._settings.timers.timers_distributed,
            emit=self._emit,
            clock=self._clock,
        )

    def _drain(self) -> Drain:
        return open_drain(
            self._database,
            self._app.outbox.emitters,
            self._settings.outbox,
            self._app.locks,
            emit=self._emit,
            clock=self._clock,
            server=lambda: self.keeper.server,
            host=self.keeper.profile.name,
        )

    def _outbox_components(self, hub: NoticeHub) -> Sequence[Component]:
        interval, settings = self._settings.upkeep.cleanup_interval, self._settings.outbox
        kept = self._looped(OutboxRetention(self._database, settings, interval=interval, clock=self._clock))
        if Role.OUTBOX not in self.keeper.profile.roles:
            return [kept]
        watch = self._looped(OutboxWatch(self._database, settings, emit=self._emit, clock=self._clock))
        component = DrainComponent(self._drain(), emit=self._emit)
        hub.subscribe("outbox", lambda _: component.wake())
        return [kept, watch, component]

    def _recovery(self, notify: Callable[[str], None] = lambda _: None) -> Recovery:
        return Recovery(
            self._database,
            judge=lambda: self.keeper.server,
            interval=self._settings.runtime.recovery_interval,
            emit=self._emit,
            notify=notify,
            now=self._clock.injected,
        )

    def _seeding(self) -> SeedingComponent:
        seeding = Seeding(
            self._database,
            self._app.declarations,
            app=self._settings.runtime.name,
            server=lambda: self.keeper.server,
            prune=self._settings.manifests.prune_orphaned_manifests,
            interval=self._settings.upkeep.cleanup_interval,
            emit=self._emit,
            clock=self._clock,
        )
        return SeedingComponent(seeding, emit=self._emit)


def manager_of(app: Interlock, database: Database) -> ManifestManager:
    settings = app.settings.manifests
    return ManifestManager(
        database,
        settings,
        policies=EntryPolicies(settings, app.train_options),
        max_crashes=app.settings.worker.max_crashes,
        emit=app.events.emit,
        clock=app.clock,
    )


def retention_of(app: Interlock, database: Database) -> Retention:
    return Retention(database, app.settings.upkeep, emit=app.events.emit, clock=app.clock)
