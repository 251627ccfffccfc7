"""The app: where settings, the database and the components of a server are put together."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from interlock.dispatch.gateway import WorkGateway
from interlock.dispatch.routes import Routes
from interlock.dispatch.surface import EnqueueingApp
from interlock.errors import InvalidOption, UnknownTrain
from interlock.locks.open import namespace_of, open_locks
from interlock.manifests.declare import Declarations
from interlock.manifests.surface import DeclaringApp
from interlock.model.execution import Policy
from interlock.model.server import Role
from interlock.observe.bus import Bus
from interlock.observe.events.store import SchemaApplied
from interlock.operate.dead_letters import DeadLetterDesk
from interlock.operate.explain_surface import ExaminedApp
from interlock.operate.surface import OperatingApp
from interlock.outbox.inbox import Inbox
from interlock.outbox.surface import Outbox
from interlock.runtime.app_database import AppDatabase
from interlock.runtime.both_ways import BothWays
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.main import run_main
from interlock.runtime.openings import Openings
from interlock.runtime.portal import portal
from interlock.runtime.server import checked_roles
from interlock.settings import load_settings
from interlock.store import migrate
from interlock.store.server import Servers
from interlock.timers.registry import TimerRegistry
from interlock.timers.surface import TimingApp
from interlock.trains.registry import Registry
from interlock.worker.extensions import Extensions
from interlock.worker.surface import ExtendedApp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

    from interlock.assembly.server import Assembly
    from interlock.manifests.manager import ManifestManager
    from interlock.model.server import ServerRow
    from interlock.runtime.clock import Clock
    from interlock.runtime.keeper import Keeper
    from interlock.runtime.supervisor import Supervisor
    from interlock.settings import Settings
    from interlock.store.database import Database
    from interlock.trains.options import TrainOptions
    from interlock.upkeep.retention import Retention
    from interlock.web.probes import Around
    from interlock.web.runner import Listening


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
        self._database = AppDatabase(lambda: self.settings.store, emit=self.events.emit)
        self._openings = Openings()
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
            lambda: self.settings.store.schema,
            policy=self.default_policy(),
            max_input_bytes=self.settings.dispatch.max_input_bytes,
            declared_groups=self._declared_groups,
            events=self.events,
            clock=lambda: self.clock,
        )
        self.trains.attach(self.work)
        self.routes = Routes(self.trains)
        self.dead_letters = DeadLetterDesk(lambda: self.commands)
        self.outbox = Outbox(
            lambda: self.settings.store.schema,
            self.adatabase,
            clock=lambda: self.clock,
            max_bytes=lambda: self.settings.dispatch.max_input_bytes,
            settings=lambda: self.settings.outbox,
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
        self._openings.enter()
        try:
            await self._ensure_schema(apply=self._database.is_embedded)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Be no client any more; the last of those who opened the app, or run it as a server, closes it."""
        if self._openings.leave():
            await self._close()

    async def _close(self) -> None:
        async with AsyncExitStack() as closing:  # each of them, also where it is cancelled in the middle
            closing.push_async_callback(self._database.aclose)
            closing.push_async_callback(self.work.aclose)
            await self.locks.aclose()

    @property
    def dsn(self) -> str:
        """The address of the app's database, password included, for connections of your own.

        An embedded database has one only while the app is open.
        """
        return self._database.dsn

    async def adatabase(self) -> Database:
        """The database, with the embedded server started if no other was named."""
        return await self._database.aget()

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

    def running(
        self, roles: Iterable[str] | None = None, *, probes: str | None = None, runner: str | None = None
    ) -> BothWays[Keeper]:
        """Run as a server until the block ends, in these roles; by default in all of them. For `async with` and `with`.

        `probes` is where `/live`, `/ready` and `/startup` are answered: a port of the loopback, or ADDRESS:PORT.
        `runner` makes it a runner, which has no other role: it runs what an HttpSubmitter posts to that address.
        """
        return BothWays(self._running(roles, probes, runner))

    @asynccontextmanager
    async def _running(
        self, roles: Iterable[str] | None, probes: str | None, runner: str | None
    ) -> AsyncGenerator[Keeper, None]:
        self._openings.enter()
        try:
            supervisor, keeper = await self._server(roles, probes, runner)
            await supervisor.start()
            try:
                yield keeper
            finally:
                await supervisor.stop()
        finally:
            await self.aclose()

    async def arun(
        self, roles: Iterable[str] | None = None, *, probes: str | None = None, runner: str | None = None
    ) -> Supervisor:
        """Run as a server until SIGTERM or SIGINT; a second signal forces. See `running` for `probes` and `runner`."""
        self._openings.enter()
        try:
            supervisor, _ = await self._server(roles, probes, runner)
        except BaseException:
            await self.aclose()
            raise
        with supervisor.handle_signals():  # to the end: a late signal must not cut the closing in half
            try:
                await supervisor.run_until_stopped()
            finally:
                await self.aclose()
        return supervisor

    def run(
        self, roles: Iterable[str] | None = None, *, probes: str | None = None, runner: str | None = None
    ) -> Supervisor:
        """Run as a server until SIGTERM; the blocking form of `arun`, for scripts."""
        return run_main(self.arun(roles, probes=probes, runner=runner), fast_loop())

    async def _server(
        self, roles: Iterable[str] | None, probes: str | None = None, runner: str | None = None
    ) -> tuple[Supervisor, Keeper]:
        around = None if probes is None else self._probes_at(probes)
        listening = None if runner is None else self._runner_at(runner, roles)
        assembly = await self._assemble(roles, listening)
        return assembly.supervisor(around), assembly.keeper

    def _probes_at(self, address: str) -> Around:
        from interlock.web.probes import probes_at  # noqa: PLC0415  only who asks for probes loads them

        return probes_at(address, self.events.emit)

    def _runner_at(self, address: str, roles: Iterable[str] | None) -> Listening:
        from interlock.web.runner import runner_at  # noqa: PLC0415  see _probes_at

        if roles is not None:
            raise InvalidOption(option="runner", found=address, expected="no roles beside it: a runner has no other")
        return runner_at(address, self.settings.worker.runner_secret)

    async def _assemble(self, roles: Iterable[str] | None, runner: Listening | None = None) -> Assembly:
        """From here on nothing is declared any more; nothing is started yet."""
        from interlock.assembly.server import Assembly  # noqa: PLC0415  see retention

        chosen = checked_roles(roles) if runner is None else frozenset({Role.RUNNER})
        for declared in (
            self.routes,
            self.trains,
            self.extensions,
            self.declarations,
            self.timers,
            self.outbox.emitters,
        ):
            declared.freeze()
        await self._ensure_schema(apply=self._database.is_embedded or self.settings.store.schema_apply == "auto")
        assembly = Assembly(self, await self.adatabase(), chosen, runner)
        self._keeper = assembly.keeper
        return assembly

    @asynccontextmanager
    async def stepping(
        self, clock: Clock, *, inline: bool = False
    ) -> AsyncGenerator[Mapping[str, Callable[[], Awaitable[Any]]], None]:
        """Be a server in which nothing runs by itself: answers the tick of each role; see `interlock.testing`."""
        before, self.clock = self.clock, clock
        self._openings.enter()
        try:
            assembly = await self._assemble(None)
            async with assembly.stepping(inline=inline) as ticks:
                yield ticks
        finally:
            await self.aclose()
            self.clock = before

    async def _ensure_schema(self, *, apply: bool) -> None:
        if apply:
            await self.aapply_schema()
            return
        database = await self.adatabase()
        async with database.connection() as conn:
            await migrate.check(conn, self.settings.store.schema)

    def retention(self, database: Database) -> Retention:
        """The retention of this app, as its servers run it."""
        from interlock.assembly.server import retention_of  # noqa: PLC0415  clients do without the parts of servers

        return retention_of(self, database)

    def manager(self, database: Database) -> ManifestManager:
        """The manager of this app, as its servers run it."""
        from interlock.assembly.server import manager_of  # noqa: PLC0415  see retention

        return manager_of(self, database)

    def train_options(self, train: str) -> TrainOptions | None:
        """None for a train of other servers."""
        try:
            return self.trains.get(train).options
        except UnknownTrain:
            return None

    def _declared_groups(self) -> set[str]:
        of_trains = {train.options.group for train in self.trains if train.options.group is not None}
        return of_trains | set(self.declarations.groups)

    def _max_input_bytes(self) -> int:
        return self.settings.dispatch.max_input_bytes

    def default_policy(self) -> Policy:
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

    @property
    def _app_name(self) -> str | None:
        return self.settings.runtime.name


def fast_loop() -> Any:
    """What makes the event loop of a server."""
    try:
        import uvloop  # noqa: PLC0415  where it exists
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
