"""The app: where settings, the database and the components of a server are put together."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from interlock.dispatch.component import DispatchComponent
from interlock.dispatch.dispatcher import JobDispatcher
from interlock.dispatch.gateway import WorkGateway
from interlock.dispatch.room import NoHands
from interlock.dispatch.submitters.inline import InlineSubmitter
from interlock.dispatch.submitters.postgres import PostgresSubmitter
from interlock.dispatch.surface import EnqueueingApp
from interlock.errors import UnknownTrain
from interlock.locks.open import namespace_of, open_locks
from interlock.locks.retention import LockRetention
from interlock.manifests.declare import Declarations
from interlock.manifests.entry_policy import EntryPolicies
from interlock.manifests.manager import ManifestManager
from interlock.manifests.seed import Seeding, SeedingComponent
from interlock.manifests.surface import DeclaringApp
from interlock.model.execution import Policy
from interlock.model.server import Role
from interlock.observe.bus import Bus
from interlock.observe.events.store import EmbeddedStarted, SchemaApplied
from interlock.operate.dead_letters import DeadLetterDesk
from interlock.operate.explain_surface import ExaminedApp
from interlock.operate.surface import OperatingApp
from interlock.outbox.component import DrainComponent
from interlock.outbox.inbox import Inbox
from interlock.outbox.open import open_drain, server_tags
from interlock.outbox.retention import OutboxRetention
from interlock.outbox.surface import Outbox
from interlock.runtime.both_ways import BothWays
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.keeper import Keeper
from interlock.runtime.loop import Loop
from interlock.runtime.notices import NoticeComponent, NotifierComponent
from interlock.runtime.portal import portal
from interlock.runtime.server import checked_roles, describe_server
from interlock.runtime.supervisor import LoopComponent, Supervisor
from interlock.settings import load_settings
from interlock.store import migrate
from interlock.store.database import Database
from interlock.store.listen import NoticeHub
from interlock.store.notify import Notifier
from interlock.store.server import Servers
from interlock.store.sql import Catalog
from interlock.timers.component import TimerComponent
from interlock.timers.registry import TimerRegistry
from interlock.timers.surface import TimingApp
from interlock.trains.registry import Registry
from interlock.upkeep.retention import Retention
from interlock.upkeep.sweep import Sweep
from interlock.worker.activate import Activator
from interlock.worker.extensions import Extensions
from interlock.worker.hooks import Hooks
from interlock.worker.lifespan import LifespanComponent
from interlock.worker.recover import Recovery
from interlock.worker.slots import Slots
from interlock.worker.surface import ExtendedApp
from interlock.worker.worked import work_and_tell
from interlock.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence

    from interlock.dispatch.submitters.protocol import LocalSubmitter
    from interlock.embedded import EmbeddedServer
    from interlock.model.server import ServerProfile, ServerRow
    from interlock.observe.bus import Emit
    from interlock.outbox.drain import Drain
    from interlock.runtime.clock import Clock
    from interlock.runtime.supervisor import Component
    from interlock.settings import Settings
    from interlock.trains.options import TrainOptions


class Interlock(DeclaringApp, EnqueueingApp, ExtendedApp, TimingApp, OperatingApp, ExaminedApp):
    """One app: what it is called, where its database is, and what its servers run.

    The database is the `dsn` argument, else INTERLOCK_DSN, else DATABASE_URL, else an embedded PostgreSQL of this
    folder. Every option of the settings reference may be passed by name.
    """

    settings: Settings

    def __init__(self, dsn: str | None = None, **options: Any) -> None:
        self.settings = load_settings({"dsn": dsn, **options})
        self.events = Bus()
        self.clock: Clock = DatabaseClock()
        self.trains = Registry()
        self.extensions = Extensions()
        self.declarations = Declarations(
            self.trains, self.settings.manifests, max_input_bytes=self.settings.dispatch.max_input_bytes
        )
        self._embedded: EmbeddedServer | None = None
        self._database: Database | None = None
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self._keeper: Keeper | None = None
        self.locks = open_locks(
            self.settings.locks,
            self.settings.runtime,
            self.adatabase,
            emit=self.events.emit,
            server=lambda: self._keeper.server if self._keeper is not None else None,
        )
        self.work = WorkGateway(
            self.adatabase,
            Catalog(self.settings.store.schema),
            policy=self._default_policy(),
            max_input_bytes=self.settings.dispatch.max_input_bytes,
            declared_groups=self._declared_groups,
            events=self.events,
            clock=lambda: self.clock,
        )
        self.trains.attach(self.work)
        self.dead_letters = DeadLetterDesk(lambda: self.commands)
        self.outbox = Outbox(
            lambda: self.settings.store.schema,
            self.adatabase,
            clock=lambda: self.clock,
            max_bytes=lambda: self.settings.dispatch.max_input_bytes,
            emit=self.events.emit,
        )
        self.inbox = Inbox(lambda: self.settings.store.schema)
        self.timers = TimerRegistry(namespace_of(self.settings.locks, self.settings.runtime), self.adatabase)

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        portal.call(self.aopen)
        return self

    def __exit__(self, *_: object) -> None:
        portal.call(self.aclose)

    async def aopen(self) -> None:
        """Be a client: the database is reachable and its schema is one that this code may use; nothing runs."""
        try:
            await self._ensure_schema(apply=self._embedded_is_used())
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        await self.locks.aclose()
        await self.work.aclose()
        if self._database is not None:
            await self._database.close()
        if self._embedded is not None and self._pid == os.getpid():
            await asyncio.to_thread(self._embedded.stop)
        self._embedded = self._database = None

    async def adatabase(self) -> Database:
        """The database, with the embedded server started if no other was named."""
        if self._database is None or self._inherits_embedded():
            await asyncio.to_thread(self._open)
        return cast("Database", self._database)

    async def aapply_schema(self) -> migrate.Applied:
        """Bring the schema to the version of this code."""
        database = await self.adatabase()
        async with database.connection() as conn:
            applied = await migrate.apply(conn, self.settings.store.schema)
        if applied.before != applied.after:
            self.events.emit(
                SchemaApplied(schema=self.settings.store.schema, from_version=applied.before, to_version=applied.after)
            )
        return applied

    def apply_schema(self) -> migrate.Applied:
        """The blocking twin of `aapply_schema`."""
        return portal.call(self.aapply_schema)

    async def aservers(self, *, all: bool = False) -> list[ServerRow]:  # noqa: A002  as in the command's flag
        """The servers that the registry knows, by default those that are alive or draining."""
        database = await self.adatabase()
        async with database.connection() as conn:
            return await Servers(database.sql).list(conn, all=all)

    def servers(self, *, all: bool = False) -> list[ServerRow]:  # noqa: A002  see aservers
        """The blocking twin of `aservers`."""
        return portal.call(self.aservers, all=all)

    def running(self, roles: Iterable[str] | None = None, *, probes: str | None = None) -> BothWays[Keeper]:
        """Run as a server until the block ends, in these roles; by default in all of them. For `async with` and `with`.

        `probes` is where `/live`, `/ready` and `/startup` are answered: a port of the loopback, or ADDRESS:PORT.
        """
        return BothWays(self._running(roles, probes))

    @asynccontextmanager
    async def _running(self, roles: Iterable[str] | None, probes: str | None) -> AsyncGenerator[Keeper, None]:
        try:
            supervisor, keeper = await self._server(roles, probes)
            await supervisor.start()
            try:
                yield keeper
            finally:
                await supervisor.stop()
        finally:
            await self.aclose()

    async def arun(self, roles: Iterable[str] | None = None, *, probes: str | None = None) -> Supervisor:
        """Run as a server until SIGTERM or SIGINT; a second signal forces. See `running` for `probes`."""
        try:
            supervisor, _ = await self._server(roles, probes)
            with supervisor.handle_signals():
                await supervisor.run_until_stopped()
        finally:
            await self.aclose()
        return supervisor

    def run(self, roles: Iterable[str] | None = None, *, probes: str | None = None) -> Supervisor:
        """Run as a server until SIGTERM; the blocking form of `arun`, for scripts."""
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            return runner.run(self.arun(roles, probes=probes))

    async def _server(self, roles: Iterable[str] | None, probes: str | None = None) -> tuple[Supervisor, Keeper]:
        around = _no_probes if probes is None else _probes_at(probes, self.events.emit)
        database, keeper = await self._register_as(roles)
        return self._supervise(around(keeper, self._components(database, keeper))), keeper

    async def _register_as(self, roles: Iterable[str] | None) -> tuple[Database, Keeper]:
        """From here on nothing is declared any more; the keeper is not started yet."""
        chosen = checked_roles(roles)
        self.trains.freeze()
        self.extensions.freeze()
        self.declarations.freeze()
        self.timers.freeze()
        self.outbox.emitters.freeze()
        await self._ensure_schema(apply=self._embedded_is_used() or self.settings.store.schema_apply == "auto")
        database, runtime = await self.adatabase(), self.settings.runtime
        profile = self._profile(chosen)
        self._keeper = keeper = Keeper(database, profile, runtime, emit=self.events.emit)
        return database, keeper

    def _profile(self, roles: frozenset[Role]) -> ServerProfile:
        slots, works, delivers = self._slots(), Role.WORKER in roles, self._delivers(roles)
        return describe_server(
            self.settings.runtime,
            roles=roles if delivers else roles - {Role.OUTBOX},
            trains=slots.trains if works else self.trains.names(),
            tags=(*(slots.tags if works else ()), *(server_tags(self.settings.outbox) if delivers else ())),
            slots=slots.total if works else 0,
        )

    def _delivers(self, roles: frozenset[Role]) -> bool:
        return Role.OUTBOX in roles and self.settings.outbox.outbox_enabled and len(self.outbox.emitters) > 0

    def _supervise(self, components: Sequence[Component]) -> Supervisor:
        return Supervisor(components, emit=self.events.emit, shutdown_timeout=self.settings.runtime.shutdown_timeout)

    @asynccontextmanager
    async def stepping(
        self, clock: Clock, *, inline: bool = False
    ) -> AsyncGenerator[Mapping[str, Callable[[], Awaitable[Any]]], None]:
        """Be a server in which nothing runs by itself: answers the tick of each role; see `interlock.testing`."""
        self.clock = clock
        try:
            database, keeper = await self._register_as(None)
            hooks = self._hooks()
            seeding, resources = self._seeding_component(database, keeper), self._resources(hooks)
            supervisor = self._supervise([keeper, seeding, *resources])
            notifier = Notifier(database, emit=self.events.emit)
            worker = self._worker(database, keeper, notifier, hooks)
            work = partial(work_and_tell, worker, hooks)
            local = InlineSubmitter(work) if inline else None
            dispatcher = self._dispatcher(database, keeper, worker, notifier.notify, local)
            drain, timers = self._drain(database, keeper), self._timer_component(database, keeper)
            await supervisor.start()
            try:
                steps = {**self._ticks(database, keeper), "timers": timers.step}
                yield {**steps, "dispatch": dispatcher.tick, "worker": work, "outbox": drain.step}
            finally:
                await timers.cancel()
                await drain.close()
                await drain.abandon()
                await worker.aclose()
                await dispatcher.close()
                await notifier.close()
                await supervisor.stop()
        finally:
            await self.aclose()

    def _ticks(self, database: Database, keeper: Keeper) -> dict[str, Callable[[], Awaitable[Any]]]:
        """The ticks that hold nothing of their own, by name."""
        recovery, sweep = self._recovery(database, keeper), Sweep(database, emit=self.events.emit, clock=self.clock)
        ticks = {"manifests": self.manager(database).tick, "recovery": recovery.step, "sweep": sweep.step}
        return {**ticks, "retention": self.retention(database).step}

    async def _ensure_schema(self, *, apply: bool) -> None:
        if apply:
            await self.aapply_schema()
            return
        database = await self.adatabase()
        async with database.connection() as conn:
            await migrate.check(conn, self.settings.store.schema)

    def _components(self, database: Database, keeper: Keeper) -> Sequence[Component]:
        """In the order of their start: what comes later relies on what comes before."""
        emit = self.events.emit
        notifier = Notifier(database, emit=emit)
        recovery = self._recovery(database, keeper, notifier.notify)
        retention, lock_retention = self.retention(database), LockRetention(database)
        sweep, hub = Sweep(database, emit=emit, clock=self.clock), NoticeHub(database, emit=emit)
        return [
            keeper,
            NotifierComponent(notifier),
            self._seeding_component(database, keeper),
            NoticeComponent(hub, emit=emit),
            LoopComponent(Loop(recovery.name, recovery.tick, emit=emit)),
            LoopComponent(Loop(retention.name, retention.tick, emit=emit)),
            LoopComponent(Loop(lock_retention.name, lock_retention.tick, emit=emit)),
            LoopComponent(Loop(sweep.name, sweep.tick, emit=emit)),
            *([self._manager_loop(database, hub)] if Role.MANIFESTS in keeper.profile.roles else []),
            *self._work_components(database, keeper, notifier, hub),
            *([self._timer_component(database, keeper)] if Role.TIMERS in keeper.profile.roles else []),
            *self._outbox_components(database, keeper, hub),
        ]

    def retention(self, database: Database) -> Retention:
        """The retention of this app, as its servers run it."""
        return Retention(database, self.settings.upkeep, emit=self.events.emit, clock=self.clock)

    def manager(self, database: Database) -> ManifestManager:
        """The manager of this app, as its servers run it."""
        settings = self.settings.manifests
        return ManifestManager(
            database,
            settings,
            policies=EntryPolicies(settings, self._train_options),
            max_crashes=self.settings.worker.max_crashes,
            emit=self.events.emit,
            clock=self.clock,
        )

    def _train_options(self, train: str) -> TrainOptions | None:
        """None for a train of other servers."""
        try:
            return self.trains.get(train).options
        except UnknownTrain:
            return None

    def _manager_loop(self, database: Database, hub: NoticeHub) -> Component:
        manager = self.manager(database)
        loop = Loop(manager.name, manager.run, emit=self.events.emit)
        hub.subscribe("manifest", lambda _: loop.wake())
        return LoopComponent(loop)

    def _timer_component(self, database: Database, keeper: Keeper) -> TimerComponent:
        return TimerComponent(
            self.timers,
            database,
            self.locks,
            app=self._app_name,
            server=keeper.profile.name,
            distributed=self.settings.timers.timers_distributed,
            emit=self.events.emit,
            clock=self.clock,
        )

    def _drain(self, database: Database, keeper: Keeper) -> Drain:
        return open_drain(
            database,
            self.outbox.emitters,
            self.settings.outbox,
            self.locks,
            emit=self.events.emit,
            clock=self.clock,
            server=lambda: keeper.server,
            host=keeper.profile.name,
        )

    def _outbox_components(self, database: Database, keeper: Keeper, hub: NoticeHub) -> Sequence[Component]:
        interval, settings = self.settings.upkeep.cleanup_interval, self.settings.outbox
        retention = OutboxRetention(database, settings, interval=interval, clock=self.clock)
        kept = LoopComponent(Loop(retention.name, retention.tick, emit=self.events.emit))
        if Role.OUTBOX not in keeper.profile.roles:
            return [kept]
        component = DrainComponent(self._drain(database, keeper), emit=self.events.emit)
        hub.subscribe("outbox", lambda _: component.wake())
        return [kept, component]

    def _recovery(self, database: Database, keeper: Keeper, notify: Callable[[str], None] = lambda _: None) -> Recovery:
        return Recovery(
            database,
            judge=lambda: keeper.server,
            interval=self.settings.runtime.recovery_interval,
            emit=self.events.emit,
            notify=notify,
            now=self.clock.injected,
        )

    def _slots(self) -> Slots:
        settings = self.settings.worker
        return Slots(self.trains, slots=settings.worker_slots, tags=settings.worker_tags)

    def _hooks(self) -> Hooks:
        return Hooks(self.extensions, self.trains, emit=self.events.emit)

    def _resources(self, hooks: Hooks) -> Sequence[Component]:
        wanted = self.extensions.resources or hooks.hear_success or hooks.hear_failure
        return [LifespanComponent(self.extensions.resources, hooks)] if wanted else []

    def _worker(
        self, database: Database, keeper: Keeper, notifier: Notifier, hooks: Hooks, hub: NoticeHub | None = None
    ) -> Worker:
        boost, policy = self.settings.manifests.dependent_priority_boost, self._default_policy()
        worker = Worker(
            database,
            self._slots(),
            settings=self.settings.worker,
            server=lambda: keeper.server,
            host=keeper.profile.name,
            clock=self.clock,
            activator=Activator(database, policy=policy, boost=boost, clock=self.clock, emit=self.events.emit),
            emit=self.events.emit,
            notify=notifier.notify,
            watched=self.events.watched,
            extensions=self.extensions,
            hooks=hooks,
        )
        keeper.on_lost(worker.lost)
        if hub is not None:
            hub.subscribe("job", lambda _: worker.wake())
            hub.subscribe("cancel", worker.cancel_noticed)
        return worker

    def _work_components(
        self, database: Database, keeper: Keeper, notifier: Notifier, hub: NoticeHub
    ) -> Sequence[Component]:
        """The worker and its dispatcher; a dispatcher alone serves the trains that run elsewhere."""
        roles = keeper.profile.roles
        if Role.WORKER not in roles and Role.DISPATCH not in roles:
            return []
        hooks = self._hooks()
        worker = self._worker(database, keeper, notifier, hooks, hub) if Role.WORKER in roles else None
        dispatcher = self._dispatcher(database, keeper, worker, notifier.notify)
        dispatch = DispatchComponent(dispatcher, emit=self.events.emit, notify=notifier.notify)
        hub.subscribe("work", lambda _: dispatch.wake())
        self.work.wake_with(dispatch.wake)
        if worker is None:
            return [dispatch]
        worker.on_freed(dispatch.freed)
        return [*self._resources(hooks), worker, dispatch]

    def _dispatcher(
        self,
        database: Database,
        keeper: Keeper,
        worker: Worker | None,
        notify: Callable[[str], None],
        local: LocalSubmitter | None = None,
    ) -> JobDispatcher:
        hands = NoHands() if worker is None else worker.slots
        wake = (lambda: None) if worker is None else worker.wake
        return JobDispatcher(
            database,
            self.settings.dispatch,
            hands=hands,
            local=local or PostgresSubmitter(wake=wake, free_slots=lambda: hands.free, notify=notify),
            server=lambda: keeper.server,
            emit=self.events.emit,
            clock=self.clock,
            watched=self.events.watched,
        )

    def _declared_groups(self) -> set[str]:
        of_trains = {train.options.group for train in self.trains if train.options.group is not None}
        return of_trains | set(self.declarations.groups)

    def _max_input_bytes(self) -> int:
        return self.settings.dispatch.max_input_bytes

    def _default_policy(self) -> Policy:
        """What holds for work of which neither the caller, the manifest nor the train says otherwise."""
        settings = self.settings.manifests
        return Policy(
            max_attempts=settings.max_attempts,
            max_crashes=self.settings.worker.max_crashes,
            retry_delay=settings.retry_delay,
            max_retry_delay=settings.max_retry_delay,
            retry_backoff=settings.retry_backoff,
            timeout=settings.default_job_timeout,
        )

    def _seeding_component(self, database: Database, keeper: Keeper) -> SeedingComponent:
        return SeedingComponent(self._seeding(database, keeper), emit=self.events.emit)

    def _seeding(self, database: Database, keeper: Keeper) -> Seeding:
        return Seeding(
            database,
            self.declarations,
            app=self._app_name,
            server=lambda: keeper.server,
            prune=self.settings.manifests.prune_orphaned_manifests,
            interval=self.settings.upkeep.cleanup_interval,
            emit=self.events.emit,
            clock=self.clock,
        )

    @property
    def _app_name(self) -> str | None:
        return self.settings.runtime.name

    def _embedded_is_used(self) -> bool:
        return self.settings.store.dsn is None

    def _inherits_embedded(self) -> bool:
        """Whether this is a forked child, which has to become a user of the embedded server itself."""
        return self._embedded is not None and self._pid != os.getpid()

    def _open(self) -> None:
        with self._opening:
            if self._database is None or self._inherits_embedded():
                self._pid = os.getpid()
                self._database = Database(self.settings.store.dsn or self._start_embedded(), self.settings.store)

    def _start_embedded(self) -> str:
        from interlock.embedded import EmbeddedServer  # noqa: PLC0415  only those who named no database need it

        began = time.monotonic()
        self._embedded = EmbeddedServer(embedded_folder())
        dsn = self._embedded.start()
        took = timedelta(seconds=time.monotonic() - began)
        port = int(dsn.rsplit(":", 1)[1].split("/")[0])
        self.events.emit(EmbeddedStarted(folder=str(self._embedded.folder), port=port, took=took))
        return dsn


def _no_probes(_keeper: Keeper, components: Sequence[Component]) -> Sequence[Component]:
    return components


def _probes_at(text: str, emit: Emit) -> Callable[[Keeper, Sequence[Component]], Sequence[Component]]:
    """The components with probes around them; a wrong address is refused before anything is opened."""
    from interlock.operate.health_signs import SignsComponent, VitalSigns  # noqa: PLC0415  only who asks for probes
    from interlock.web.probes import ProbeServer, parse_address  # noqa: PLC0415  see above

    address = parse_address(text)

    def around(keeper: Keeper, components: Sequence[Component]) -> Sequence[Component]:
        signs = VitalSigns(keeper)
        return [ProbeServer(address, signs, emit=emit), *components, SignsComponent(signs)]

    return around


def embedded_folder() -> Path | None:
    """Where the embedded database of this process lies; None: in the folder that is derived from the current one."""
    chosen = os.environ.get("INTERLOCK_EMBEDDED_FOLDER")
    return Path(chosen) if chosen else None


def _fast_loop() -> Any:
    try:
        import uvloop  # noqa: PLC0415  where it exists
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
