"""What holds for work of a train: its own word, from the code that is here or as servers announced it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interlock.store.known_train import KnownTrains

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.model.execution import Policy
    from interlock.store.connection import Connection
    from interlock.store.sql import Catalog
    from interlock.trains.options import TrainOptions


class TrainTerms(NamedTuple):
    priority: int | None
    policy: Policy


async def terms_of_train(
    conn: Connection, sql: Catalog, train: str, *, options_of: Callable[[str], TrainOptions | None], default: Policy
) -> TrainTerms:
    """The code that is here wins; nobody's word leaves the settings."""
    options = options_of(train)
    if options is not None:
        return TrainTerms(options.priority, _policy_of(options, default))
    known = await KnownTrains(sql).get(conn, train)
    if known is None:
        return TrainTerms(None, default)
    return TrainTerms(known.priority, known.policy(default))


def _policy_of(options: TrainOptions, default: Policy) -> Policy:
    """What the train says about trying again, else the settings."""
    retry = options.retry
    return default._replace(
        max_attempts=options.max_attempts or default.max_attempts,
        timeout=options.timeout or default.timeout,
        retry_delay=retry.delay if retry else default.retry_delay,
        max_retry_delay=retry.max_delay if retry else default.max_retry_delay,
        retry_backoff=retry.factor if retry else default.retry_backoff,
    )
