"""What holds for work of a train that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.worker.terms import terms_of_train

if TYPE_CHECKING:
    from interlock.operate.act import Act, Means
    from interlock.worker.terms import TrainTerms


async def terms_of(act: Act, means: Means, train: str) -> TrainTerms:
    return await terms_of_train(act.conn, act.sql, train, options_of=means.train_options, default=means.policy)
