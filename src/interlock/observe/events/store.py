"""What happens between this process and its database."""

from __future__ import annotations

import logging
from datetime import timedelta  # noqa: TC003  the fields of an event can be resolved at run time
from typing import ClassVar

from interlock.observe.events.base import Event, RepeatedFailure


class StoreEvent(Event):
    subject: ClassVar[str] = "store"


class ListenReady(StoreEvent):
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "listening for wake-ups"


class ListenLost(RepeatedFailure):
    subject: ClassVar[str] = "store"
    text: ClassVar[str] = "wake-ups are lost, polling goes on: {error}"


class PollingFallback(StoreEvent):
    level: ClassVar[int] = logging.WARNING
    text: ClassVar[str] = "wake-ups are not available, polling alone: {reason}"
    reason: str


class NoticeFailed(StoreEvent):
    """A wake-up could not be sent; polling finds the row all the same."""

    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "a wake-up could not be sent: {error}"
    error: str


class SchemaApplied(StoreEvent):
    text: ClassVar[str] = "schema {schema} brought from version {from_version} to {to_version}"
    schema: str
    from_version: int
    to_version: int


class EmbeddedStarted(Event):
    subject: ClassVar[str] = "embedded"
    text: ClassVar[str] = "embedded PostgreSQL in {folder} is ready on port {port} after {took}"
    folder: str
    port: int
    took: timedelta


class EmbeddedAdopted(Event):
    """Another process of this machine had started it already."""

    subject: ClassVar[str] = "embedded"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = "embedded PostgreSQL in {folder} runs already, on port {port}"
    folder: str
    port: int
