"""On how many slots those agree who want a name for different N.

A free slot is offered to one N, and only those who want that N take it without asking further. So there is one rule to
keep, under a lock on the name: what is held and what is offered are together never more than the smallest N of all
holders. A slot that is given back stays offered to the N of its holder, which was counted in. A slot whose row somebody
has locked counts as held, with the N that it was offered to: it is being taken, or held in a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.model.lease import Peers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

IN_A_TRANSACTION = "a transaction"


@dataclass(frozen=True, slots=True)
class Agreement:
    offered: list[int]
    """The slots that those who want this N may take now."""
    peers: Peers


def agree(
    slots: int, start: int, free: Collection[int], held: Mapping[int, tuple[int | None, str | None]]
) -> Agreement:
    """What to offer for this N, given what is free and each held slot with the N and the name of its holder."""
    counts = {n: owner or IN_A_TRANSACTION for n, owner in held.values() if n is not None}
    bound = min([slots, *counts])
    room = max(bound - len(held), 0)
    order = ((start + step) % slots for step in range(slots))
    offered = [slot for slot in order if slot < bound and slot in free][:room]
    return Agreement(offered, _peers(len(held), counts))


def _peers(holders: int, counts: Mapping[int, str]) -> Peers:
    if not counts:
        return Peers(holders=holders)
    narrowest, widest = min(counts), max(counts)
    return Peers(
        holders=holders,
        narrowest=narrowest,
        narrowest_by=counts[narrowest],
        widest=widest,
        widest_by=counts[widest],
    )
