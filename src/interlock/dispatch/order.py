"""From an order to an entry: what the caller said, else the train, else the settings of the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.errors import PayloadTooLarge
from interlock.model.execution import Policy
from interlock.model.work import DEFAULT_GROUP, NewEntry, Terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.trains.gateway import Order
    from interlock.trains.train import Train


def as_entries(orders: Sequence[Order], policy: Policy, *, max_input_bytes: int) -> list[NewEntry]:
    """The entries to write; orders of one train in one group share their terms."""
    shared: dict[tuple[Train[..., Any, Any], str | None], Terms] = {}
    train, group, terms, entries = None, None, None, []
    for order in orders:
        bound = order.bound
        content = bound.input
        if len(content) > max_input_bytes:
            raise PayloadTooLarge(what=f"the input of {bound.train!r}", size=len(content), limit=max_input_bytes)
        if terms is None or bound.declaration is not train or order.group != group:  # most often as the one before
            train, group = bound.declaration, order.group
            terms = shared.get((train, group)) or _terms(train, group, policy)
            shared[train, group] = terms
        entries.append(NewEntry(terms, content.decode(), order.priority, order.delay, order.key))
    return entries


def _terms(train: Train[..., Any, Any], group: str | None, policy: Policy) -> Terms:
    options = train.options
    return Terms(
        train=train.name,
        aliases=options.aliases,
        group=group or options.group or DEFAULT_GROUP,
        priority=options.priority,
        policy=_policy_of(train, policy),
    )


def _policy_of(train: Train[..., Any, Any], policy: Policy) -> Policy:
    options, retry = train.options, train.options.retry
    return Policy(
        max_attempts=options.max_attempts or policy.max_attempts,
        max_crashes=policy.max_crashes,
        retry_delay=retry.delay if retry else policy.retry_delay,
        max_retry_delay=retry.max_delay if retry else policy.max_retry_delay,
        retry_backoff=retry.factor if retry else policy.retry_backoff,
        timeout=options.timeout or policy.timeout,
    )
