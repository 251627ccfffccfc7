"""What happens to lock slots and the leases on them."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar

from interlock.observe.events.base import Event, RepeatedFailure


class LockEvent(Event):
    subject: ClassVar[str] = "locks"
    level: ClassVar[int] = logging.DEBUG
    name: str


class SlotAcquired(LockEvent):
    """`waited` counts from the first try, `took` is the answer time of the lock service."""

    text: ClassVar[str] = "slot {slot} of {name} taken by {owner} (fence {fence}) after {waited}"
    slot: int
    fence: int
    owner: str
    waited: timedelta
    took: timedelta


class SlotRefused(LockEvent):
    """Every slot is taken; `holders` compete with us."""

    text: ClassVar[str] = "no slot of {name} is free: {holders} of {slots} held"
    slots: int
    holders: int
    took: timedelta


class SlotReleased(LockEvent):
    text: ClassVar[str] = "slot {slot} of {name} released after {held_for}"
    slot: int
    held_for: timedelta


class SlotExpired(LockEvent):
    """A former holder neither released nor renewed: it crashed, hung or lost the lock service."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "slot {slot} of {name} was never released by {owner}; its lease ran out"
    slot: int
    owner: str


class SlotLost(LockEvent):
    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "the lease on slot {slot} of {name} (fence {fence}) is lost after {held_for}: {reason}"
    slot: int
    fence: int
    held_for: timedelta
    reason: str


class SlotHeldLong(LockEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "slot {slot} of {name} is held longer than expected: {held_for}"
    slot: int
    held_for: timedelta


class SlotForceReleased(LockEvent):
    """An operator's act; the audit keeps it too."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "slot {slot} of {name} was taken from {owner} (fence {fence}) by {actor}"
    slot: int
    fence: int
    owner: str
    actor: str


class SlotsDisagree(LockEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "{owner} counts {slots} slots of {name}, {other} counts {theirs}; the smaller number binds"
    owner: str
    slots: int
    other: str
    theirs: int


class SlotRenewalFailed(RepeatedFailure):
    subject: ClassVar[str] = "locks"
    text: ClassVar[str] = "{leases} leases could not be renewed (the first is lost in {remaining}): {error}"
    leases: int
    remaining: timedelta
