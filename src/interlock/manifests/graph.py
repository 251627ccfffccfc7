"""Who waits for whom among manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.errors import DependencyCycle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from interlock.model.manifest import ManifestDeclaration


class Graph:
    """The declared manifests with their dependencies; each has one parent at most."""

    def __init__(self, manifests: Mapping[str, ManifestDeclaration]) -> None:
        self._manifests = manifests

    def roots(self) -> list[str]:
        """Those that wait for nobody, in the order of their declaration."""
        return [name for name, manifest in self._manifests.items() if manifest.parent is None]

    def children(self) -> dict[str, list[str]]:
        """The dependents of each manifest that has some."""
        found: dict[str, list[str]] = {}
        for name, manifest in self._manifests.items():
            if manifest.parent is not None:
                found.setdefault(manifest.parent, []).append(name)
        return found

    def ancestors(self, external_id: str) -> Iterator[str]:
        """The manifest itself, its parent, and so on."""
        name: str | None = external_id
        while name is not None:
            yield name
            manifest = self._manifests.get(name)
            name = None if manifest is None else manifest.parent


def refuse_cycle(external_id: str, ancestors: Sequence[str]) -> None:
    """Refuse to hang a manifest below one of these (a parent, its parent, …) that is itself."""
    if external_id in ancestors:
        raise DependencyCycle(members=[external_id, *ancestors[: ancestors.index(external_id)]])


def parents_first(manifests: Iterable[ManifestDeclaration]) -> list[ManifestDeclaration]:
    """Sorted by how many ancestors among them each has, then by external id."""
    by_id = {manifest.external_id: manifest for manifest in manifests}
    depths: dict[str, int] = {}
    for external_id in by_id:
        path = []
        name: str | None = external_id
        while name in by_id and name not in depths:
            path.append(name)
            name = by_id[name].parent
        depth = depths[name] + 1 if name in depths else 0
        for above, member in enumerate(reversed(path)):
            depths[member] = depth + above
    return sorted(by_id.values(), key=lambda manifest: (depths[manifest.external_id], manifest.external_id))
