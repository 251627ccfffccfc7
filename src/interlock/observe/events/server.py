"""What happens to servers and their leases."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar
from uuid import UUID  # noqa: TC003  see above

from interlock.observe.events.base import Event, RepeatedFailure


class ServerEvent(Event):
    subject: ClassVar[str] = "server"
    server: UUID
    name: str


class ServerRegistered(ServerEvent):
    text: ClassVar[str] = "server {name} ({server}) registered"


class ServerDraining(ServerEvent):
    text: ClassVar[str] = "server {name} ({server}) takes no new work"


class ServerGone(ServerEvent):
    text: ClassVar[str] = "server {name} ({server}) left"


class ServerLost(ServerEvent):
    """A server stopped renewing its lease, and `by` found out."""

    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "server {name} ({server}) is lost: its lease expired; found by {by}"
    by: UUID


class LeaseRenewalFailed(RepeatedFailure):
    subject: ClassVar[str] = "server"
    text: ClassVar[str] = "server {name} could not renew its lease ({remaining} left): {error}"
    server: UUID
    name: str
    remaining: timedelta


class LeaseLostByServer(ServerEvent):
    """A server finds itself marked lost: its jobs belong to others now."""

    level: ClassVar[int] = logging.ERROR
    text: ClassVar[str] = "server {name} ({server}) lost its lease; it cancels its jobs and registers anew"
