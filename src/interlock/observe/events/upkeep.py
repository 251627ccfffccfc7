"""What is done so that the tables stay small."""

from __future__ import annotations

import logging
from typing import ClassVar

from interlock.observe.events.base import Event


class HistoryForgotten(Event):
    """A batch of old rows was deleted. Orphaned jobs are a warning: in a healthy system there are none."""

    subject: ClassVar[str] = "upkeep"
    level: ClassVar[int] = logging.DEBUG
    text: ClassVar[str] = (
        "forgot {executions} executions, {entries} entries, {dead_letters} dead letters, {acts} acts, {orphaned_jobs}"
        " orphaned jobs, {servers} servers, {trains} trains, {groups} groups"
    )
    executions: int = 0
    entries: int = 0
    dead_letters: int = 0
    acts: int = 0
    orphaned_jobs: int = 0
    servers: int = 0
    trains: int = 0
    groups: int = 0

    def severity(self) -> int:
        return logging.WARNING if self.orphaned_jobs else self.level
