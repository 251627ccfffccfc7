from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.manifests.graph import parents_first
from interlock.model.manifest import ManifestDeclaration
from interlock.model.schedule import Dependent, Manual


def manifest(name: str, parent: str | None) -> ManifestDeclaration:
    schedule = Manual() if parent is None else Dependent(parent)
    return ManifestDeclaration(external_id=name, train="t", input=b"{}", schedule=schedule)


@given(parents=st.lists(st.integers(-1, 30), max_size=30), order=st.randoms(use_true_random=False))
def test_whatever_the_order_of_declaration_parents_come_first(parents: list[int], order):
    """Each manifest hangs below an earlier one, or below one that is not among them."""
    made = [
        manifest(f"m{n:02}", None if parent < 0 else f"m{parent:02}" if parent < n else "elsewhere")
        for n, parent in enumerate(parents)
    ]
    order.shuffle(made)
    found = [one.external_id for one in parents_first(made)]
    assert sorted(found) == sorted(one.external_id for one in made)
    for one in made:
        if one.parent in found:
            assert found.index(one.parent) < found.index(one.external_id)


def test_a_chain_of_ten_thousand_is_sorted_without_recursion():
    chain = [manifest(f"m{n:05}", f"m{n - 1:05}" if n else None) for n in range(10_000)]
    assert parents_first(reversed(chain)) == chain
