"""The calls of an app that declare trains, groups and manifests, or write manifests at run time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from interlock.manifests.put import put_manifest
from interlock.runtime.clock import DatabaseClock
from interlock.runtime.portal import portal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from interlock.manifests.declare import Declarations
    from interlock.manifests.options import ManifestKeywords
    from interlock.manifests.put import Outcome
    from interlock.manifests.refs import Group, ManifestRef, ManifestRefs
    from interlock.model.schedule import Cron, Every, Once
    from interlock.runtime.clock import Clock
    from interlock.store.database import Database
    from interlock.trains.bound import Bound
    from interlock.trains.declare import DeclareChain, DeclareTrain


class DeclaringApp(ABC):
    """Declarations do no I/O, are checked at the call and refused once a server of the app has started."""

    declarations: Declarations
    clock: Clock = DatabaseClock()

    @property
    def train(self) -> DeclareTrain:
        """Declare a function as a train: `@app.train` or `@app.train(name=…, …)`."""
        return self.declarations.trains.train

    @property
    def chain(self) -> DeclareChain:
        """Declare a train of junctions: `app.chain(name, first, second, …)`."""
        return self.declarations.trains.chain

    def group(
        self,
        name: str,
        *,
        max_active_jobs: int | None = None,
        priority: int | None = None,
        enabled: bool | None = None,
    ) -> Group:
        """Declare a manifest group; what is left out stays as operators set it."""
        return self.declarations.group(name, max_active_jobs=max_active_jobs, priority=priority, enabled=enabled)

    def schedule(
        self,
        external_id: str,
        bound: Bound[Any],
        when: Every | Cron | Once | None = None,
        **options: Unpack[ManifestKeywords],
    ) -> ManifestRef:
        """Declare a manifest: run a train with this input at these times, or (None) only when somebody triggers it."""
        return self.declarations.schedule(external_id, bound, when, options)

    def schedule_many(
        self,
        prefix: str,
        items: Iterable[tuple[str | int, Bound[Any]]],
        when: Every | Cron | Once | None = None,
        **options: Unpack[ManifestKeywords],
    ) -> ManifestRefs:
        """Declare one manifest per item, called `prefix-key`; those of earlier deploys that are not listed go."""
        return self.declarations.schedule_many(prefix, items, when, options)

    async def aput_schedule(
        self,
        external_id: str,
        bound: Bound[Any],
        when: Every | Cron | Once | None = None,
        *,
        parent: str | ManifestRef | None = None,
        dormant: bool = False,
        **options: Unpack[ManifestKeywords],
    ) -> Outcome:
        """Write a manifest now, at run time; it is never pruned. With `parent` it runs after that one."""
        declaration = self.declarations.describe(external_id, bound, when, parent=parent, dormant=dormant, **options)
        return await put_manifest(await self.adatabase(), declaration, app=self._app_name, clock=self.clock)

    def put_schedule(
        self,
        external_id: str,
        bound: Bound[Any],
        when: Every | Cron | Once | None = None,
        *,
        parent: str | ManifestRef | None = None,
        dormant: bool = False,
        **options: Unpack[ManifestKeywords],
    ) -> Outcome:
        """The blocking twin of `aput_schedule`."""
        return portal.call(self.aput_schedule, external_id, bound, when, parent=parent, dormant=dormant, **options)

    @property
    @abstractmethod
    def _app_name(self) -> str | None: ...

    @abstractmethod
    async def adatabase(self) -> Database: ...
