"""What a declaration answers: a group or a manifest that later declarations can refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from interlock.errors import InvalidOption, UnknownManifest
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    from interlock.manifests.options import ManifestKeywords
    from interlock.trains.bound import Bound


class Group:
    """A declared manifest group: pass it, or its name, as `group=`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Group({self.name!r})"


class DeclareDependents(Protocol):
    """Declares manifests that wait for others: (parent, external id, train with its input) each."""

    def __call__(
        self, items: list[tuple[ManifestRef, str, Bound[Any]]], *, dormant: bool, options: ManifestKeywords
    ) -> list[ManifestRef]: ...


class ManifestRef:
    """A declared manifest, to which dependents can be added."""

    __slots__ = ("_declare", "external_id")

    def __init__(self, external_id: str, declare: DeclareDependents) -> None:
        self.external_id, self._declare = external_id, declare

    def then(
        self, external_id: str, bound: Bound[Any], *, dormant: bool = False, **options: Unpack[ManifestKeywords]
    ) -> ManifestRef:
        """Run another whenever this one has succeeded again; a dormant one only when a run of this one activates it."""
        [ref] = self._declare([(self, external_id, bound)], dormant=dormant, options=options)
        return ref

    def then_many(
        self,
        prefix: str,
        items: Iterable[tuple[str | int, Bound[Any]]],
        *,
        dormant: bool = False,
        **options: Unpack[ManifestKeywords],
    ) -> ManifestRefs:
        """Fan out: each of these depends on this one manifest."""
        keys = keyed(prefix, items)
        dependents = [(self, external_id, bound) for _, external_id, bound in keys]
        return by_key(keys, self._declare(dependents, dormant=dormant, options=options), self._declare)

    def __repr__(self) -> str:
        return f"ManifestRef({self.external_id!r})"


class ManifestRefs(Mapping[str, ManifestRef]):
    """The manifests of one `schedule_many`, by key."""

    def __init__(self, refs: dict[str, ManifestRef], declare: DeclareDependents) -> None:
        self._refs, self._declare = refs, declare

    def then_many(
        self,
        prefix: str,
        items: Iterable[tuple[str | int, Bound[Any]]],
        *,
        dormant: bool = False,
        **options: Unpack[ManifestKeywords],
    ) -> ManifestRefs:
        """One to one: each of these depends on the manifest with the same key."""
        keys = keyed(prefix, items)
        dependents = [(self._parent(key), external_id, bound) for key, external_id, bound in keys]
        return by_key(keys, self._declare(dependents, dormant=dormant, options=options), self._declare)

    def _parent(self, key: str) -> ManifestRef:
        try:
            return self._refs[key]
        except KeyError:
            raise UnknownManifest(name=key, known=list(self._refs)) from None

    def __getitem__(self, key: str) -> ManifestRef:
        return self._refs[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._refs)

    def __len__(self) -> int:
        return len(self._refs)


def keyed(prefix: str, items: Iterable[tuple[str | int, Bound[Any]]]) -> list[tuple[str, str, Bound[Any]]]:
    """Key, external id and train with its input of each item; the id is `prefix-key`."""
    checked_name("prefix", prefix)
    expected = "pairs of a key (text or number) and a train with its input"
    if not isinstance(items, Iterable):
        raise InvalidOption(option="items", found=items, expected=expected)
    found = []
    for item in items:
        match item:
            case (str() | int() as key, bound) if not isinstance(key, bool):
                found.append((str(key), f"{prefix}-{key}", bound))
            case _:
                raise InvalidOption(option="items", found=item, expected=expected)
    return found


def by_key(
    keys: list[tuple[str, str, Bound[Any]]], refs: list[ManifestRef], declare: DeclareDependents
) -> ManifestRefs:
    return ManifestRefs({key: ref for (key, _, _), ref in zip(keys, refs, strict=True)}, declare)
