"""The parts of a server that work: its worker, its dispatcher, and what stands between it and other servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.dispatch.component import DispatchComponent
from interlock.dispatch.dispatcher import JobDispatcher
from interlock.dispatch.room import NoHands
from interlock.dispatch.submitters.inline import InlineSubmitter
from interlock.dispatch.submitters.postgres import PostgresSubmitter
from interlock.model.server import Role
from interlock.worker.activate import Activator
from interlock.worker.hooks import Hooks
from interlock.worker.intake import Intake, SubmittedOnly
from interlock.worker.lifespan import LifespanComponent
from interlock.worker.slots import Slots
from interlock.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.app import Interlock
    from interlock.dispatch.submitters.protocol import LocalSubmitter, Route
    from interlock.runtime.keeper import Keeper
    from interlock.runtime.supervisor import Component
    from interlock.store.database import Database
    from interlock.store.listen import NoticeHub
    from interlock.store.notify import Notifier
    from interlock.web.runner import Listening

DISPATCHING = {Role.WORKER, Role.DISPATCH}


class WorkParts:
    def __init__(self, app: Interlock, database: Database, keeper: Keeper) -> None:
        self._app, self._database, self._keeper, self._settings = app, database, keeper, app.settings
        self._emit, self._clock = app.events.emit, app.clock

    def hooks(self) -> Hooks:
        return Hooks(self._app.extensions, self._app.trains, emit=self._emit)

    def resources(self, hooks: Hooks) -> Sequence[Component]:
        resources = self._app.extensions.resources
        wanted = resources or hooks.hear_success or hooks.hear_failure
        return [LifespanComponent(resources, hooks)] if wanted else []

    def worker(self, notify: Callable[[str], None], slots: Slots, hooks: Hooks, hub: NoticeHub | None = None) -> Worker:
        activator = Activator(
            self._database,
            policy=self._app.default_policy(),
            options_of=self._app.train_options,
            boost=self._settings.manifests.dependent_priority_boost,
            max_input_bytes=self._settings.dispatch.max_input_bytes,
            clock=self._clock,
            emit=self._emit,
        )
        worker = Worker(
            self._database,
            slots,
            settings=self._settings.worker,
            server=lambda: self._keeper.server,
            host=self._keeper.profile.name,
            clock=self._clock,
            activator=activator,
            emit=self._emit,
            notify=notify,
            watched=self._app.events.watched,
            extensions=self._app.extensions,
            hooks=hooks,
        )
        self._keeper.on_lost(worker.lost)
        if hub is not None:
            hub.subscribe("job", lambda _: worker.wake())
            hub.subscribe("cancel", worker.cancel_noticed)
        return worker

    def dispatcher(
        self,
        worker: Worker | None,
        notify: Callable[[str], None],
        local: LocalSubmitter | None = None,
        *,
        direct: Worker | None = None,
        remote: Sequence[Route] = (),
    ) -> JobDispatcher:
        hands = NoHands() if worker is None else worker.slots
        wake = (lambda: None) if worker is None else worker.wake
        return JobDispatcher(
            self._database,
            self._settings.dispatch.naming(self._app.trains),
            hands=hands,
            local=local or PostgresSubmitter(wake=wake, free_slots=lambda: hands.free, notify=notify),
            direct=direct,
            remote=remote,
            elsewhere=() if isinstance(local, InlineSubmitter) else self._app.routes.trains,
            server=lambda: self._keeper.server,
            emit=self._emit,
            clock=self._clock,
            watched=self._app.events.watched,
        )

    def components(self, notifier: Notifier, hub: NoticeHub) -> Sequence[Component]:
        """The worker and its dispatcher; a dispatcher alone serves the trains that run elsewhere."""
        roles = self._keeper.profile.roles
        if DISPATCHING.isdisjoint(roles):
            return []
        hooks = self.hooks()
        worker = self.worker(notifier.notify, slots_of(self._app), hooks, hub) if Role.WORKER in roles else None
        dispatcher = self.dispatcher(worker, notifier.notify, direct=worker)
        dispatch = DispatchComponent(dispatcher, emit=self._emit, notify=notifier.notify)
        hub.subscribe("work", lambda _: dispatch.wake())
        hub.subscribe("room", lambda _: dispatch.freed_elsewhere())
        self._app.work.wake_with(dispatch.wake)
        submitting = [self._submitting(route, notifier, hub) for route in self._app.routes]
        if worker is None:
            return [dispatch, *submitting]
        worker.on_freed(dispatch.freed)
        return [*self.resources(hooks), worker, dispatch, *submitting]

    def runner(self, at: Listening, notifier: Notifier, hub: NoticeHub) -> Sequence[Component]:
        """The worker of a runner and the door to it, which stays open until the worker has stopped."""
        from interlock.web.runner import RunnerEndpoint  # noqa: PLC0415  only a runner loads it

        def notify(notice: str) -> None:
            # What is handed back waits for dispatchers here, because there are no jobs that another worker could claim.
            notifier.notify("work" if notice == "job" else notice)

        hooks, settings = self.hooks(), self._settings.worker
        slots = SubmittedOnly(self._app.trains, slots=settings.worker_slots, tags=settings.worker_tags)
        worker = self.worker(notify, slots, hooks, hub)
        worker.on_freed(lambda: notify("room"))
        intake = Intake(self._database, worker, clock=self._clock)
        endpoint = RunnerEndpoint(at, intake, emit=self._emit)
        return [endpoint, *self.resources(hooks), worker]

    def _submitting(self, route: Route, notifier: Notifier, hub: NoticeHub) -> Component:
        """A loop of its own, so that work for this server never waits for another."""
        dispatcher = self.dispatcher(None, notifier.notify, remote=[route])
        name = f"submit to {route.submitter.name}"
        component = DispatchComponent(dispatcher, emit=self._emit, notify=notifier.notify, name=name)
        hub.subscribe("work", lambda _: component.wake())
        hub.subscribe("room", lambda _: component.freed_elsewhere())
        return component


def slots_of(app: Interlock) -> Slots:
    settings = app.settings.worker
    return Slots(app.trains, slots=settings.worker_slots, tags=settings.worker_tags)
