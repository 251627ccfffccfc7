"""The declarations of one app: kept in memory, checked at the call, written when a server starts."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from interlock.errors import DeclarationAfterStart, DuplicateName, InvalidOption, UnknownManifest
from interlock.manifests.describe import Describer, checked_when
from interlock.manifests.graph import Graph, refuse_cycle
from interlock.manifests.refs import Group, ManifestRef, by_key, keyed
from interlock.model.manifest import GroupDeclaration
from interlock.model.schedule import Dependent, Dormant
from interlock.trains.names import checked_name
from interlock.trains.options import checked_count, checked_flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from interlock.manifests.options import ManifestKeywords
    from interlock.manifests.refs import ManifestRefs
    from interlock.manifests.settings import ManifestSettings
    from interlock.model.manifest import ManifestDeclaration
    from interlock.model.schedule import Cron, Every, Once, Schedule
    from interlock.trains.bound import Bound
    from interlock.trains.registry import Registry

HIGHEST_GROUP_PRIORITY = 31


class Declarations:
    def __init__(self, trains: Registry, settings: ManifestSettings, *, max_input_bytes: int) -> None:
        self.trains = trains
        self._describer = Describer(trains, settings, max_input_bytes)
        self._groups: dict[str, GroupDeclaration] = {}
        self._manifests: dict[str, ManifestDeclaration] = {}
        self._frozen = False

    @property
    def groups(self) -> Mapping[str, GroupDeclaration]:
        """The declared groups, by name."""
        return MappingProxyType(self._groups)

    @property
    def manifests(self) -> Mapping[str, ManifestDeclaration]:
        """The declared manifests, by external id, in the order of their declaration."""
        return MappingProxyType(self._manifests)

    @property
    def graph(self) -> Graph:
        """Who waits for whom among the declared manifests."""
        return Graph(self._manifests)

    def freeze(self) -> None:
        """The app has started: from now on manifests are written at run time."""
        self._frozen = True

    def group(self, name: str, *, max_active_jobs: int | None, priority: int | None, enabled: bool | None) -> Group:
        self._refuse_after_start(f"group {name!r}", "declare it at import; one that exists is changed with set_group")
        declaration = GroupDeclaration(
            name=checked_name("group", name),
            max_active_jobs=checked_count("max_active_jobs", max_active_jobs),
            priority=_checked_group_priority(priority),
            enabled=None if enabled is None else checked_flag("enabled", enabled),
        )
        if name in self._groups:
            raise DuplicateName(kind="group", name=name)
        self._groups[name] = declaration
        return Group(name)

    def schedule(
        self,
        external_id: str,
        bound: Bound[Any],
        when: Every | Cron | Once | None,
        options: ManifestKeywords,
    ) -> ManifestRef:
        [ref] = self._add([(external_id, bound, checked_when(when))], options)
        return ref

    def schedule_many(
        self,
        prefix: str,
        items: Iterable[tuple[str | int, Bound[Any]]],
        when: Every | Cron | Once | None,
        options: ManifestKeywords,
    ) -> ManifestRefs:
        keys, schedule = keyed(prefix, items), checked_when(when)
        refs = self._add([(external_id, bound, schedule) for _, external_id, bound in keys], options)
        return by_key(keys, refs, self._depend)

    def describe(
        self,
        external_id: str,
        bound: Bound[Any],
        when: Every | Cron | Once | None = None,
        *,
        parent: str | ManifestRef | None = None,
        dormant: bool = False,
        **options: Unpack[ManifestKeywords],
    ) -> ManifestDeclaration:
        """A declaration that is not kept, for one that is written at run time."""
        if parent is None:
            if dormant:
                raise InvalidOption(option="dormant", found=True, expected="a parent= that activates it")
            return self._describer.describe(external_id, bound, checked_when(when), options)
        if when is not None:
            raise InvalidOption(option="when", found=when, expected="None together with parent=: the parent decides")
        above = parent.external_id if isinstance(parent, ManifestRef) else checked_name("parent", parent)
        refuse_cycle(external_id, [above])
        return self._describer.describe(external_id, bound, _after(above, dormant=dormant), options)

    def _depend(
        self, items: list[tuple[ManifestRef, str, Bound[Any]]], *, dormant: bool, options: ManifestKeywords
    ) -> list[ManifestRef]:
        checked_flag("dormant", dormant)
        for parent, external_id, _ in items:
            if parent.external_id not in self._manifests:
                raise UnknownManifest(name=parent.external_id, known=list(self._manifests))
            refuse_cycle(external_id, list(self.graph.ancestors(parent.external_id)))
        return self._add(
            [(external_id, bound, _after(parent.external_id, dormant=dormant)) for parent, external_id, bound in items],
            options,
        )

    def _add(self, items: list[tuple[str, Bound[Any], Schedule]], options: ManifestKeywords) -> list[ManifestRef]:
        """All of them or, if one is wrong, none."""
        described: dict[str, ManifestDeclaration] = {}
        for external_id, bound, schedule in items:
            self._refuse_after_start(
                f"manifest {external_id!r}", "declare it at import, or write it at run time with put_schedule"
            )
            declaration = self._describer.describe(external_id, bound, schedule, options)
            if external_id in self._manifests or external_id in described:
                raise DuplicateName(kind="manifest", name=external_id)
            described[external_id] = declaration
        self._manifests |= described
        return [ManifestRef(external_id, self._depend) for external_id in described]

    def _refuse_after_start(self, what: str, advice: str) -> None:
        if self._frozen:
            raise DeclarationAfterStart(what=what, advice=advice)


def _after(parent: str, *, dormant: bool) -> Schedule:
    return Dormant(parent) if dormant else Dependent(parent)


def _checked_group_priority(found: object) -> int | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= HIGHEST_GROUP_PRIORITY:
        expected = f"a whole number from 0 to {HIGHEST_GROUP_PRIORITY}"
        raise InvalidOption(option="priority", found=found, expected=expected)
    return found
