"""What holds for work of a train: its own word, from the code that is here or as servers announced it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock.store.known_train import KnownTrains
from interlock.worker.activate import policy_of

if TYPE_CHECKING:
    from interlock.model.execution import Policy
    from interlock.operate.act import Act, Means


class TrainTerms(NamedTuple):
    priority: int | None
    policy: Policy


async def terms_of(act: Act, means: Means, train: str) -> TrainTerms:
    """The code that is here wins; nobody's word leaves the settings."""
    options = means.train_options(train)
    if options is not None:
        return TrainTerms(options.priority, policy_of(options, means.policy))
    known = await KnownTrains(act.sql).get(act.conn, train)
    if known is None:
        return TrainTerms(None, means.policy)
    return TrainTerms(known.priority, known.policy(means.policy))
