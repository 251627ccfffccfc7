"""What code says about manifests and groups, in the form in which it is compared with what is stored.

Code owns the definition, operators own the switches. So a row keeps what code last said (`declared`), and only what
code says differently now is written: an operator's disable or cap survives every deploy that does not speak of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from interlock.model.plan import DEFAULT_MISFIRE_THRESHOLD, Misfire
from interlock.model.schedule import Dependent, Dormant
from interlock.model.schedule_json import encode_exclusions, encode_schedule

if TYPE_CHECKING:
    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Schedule

DEFAULT_GROUP = "default"
GROUP_DEFAULTS = {"max_active_jobs": None, "priority": 0, "enabled": True}
REPLANNING = frozenset({"schedule", "time_zone", "exclusions", "variance"})
"""What a manifest may say that moves its next fire."""
_MICROSECOND = timedelta(microseconds=1)

Said = dict[str, Any]
"""Statements by name, as JSON values."""


class Origin(StrEnum):
    """Where a manifest comes from: code that may stop saying it, or a call at run time, which stays."""

    DECLARED = "declared"
    RUNTIME = "runtime"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDeclaration:
    """A manifest group as code describes it; None says nothing about that switch."""

    name: str
    max_active_jobs: int | None = None
    priority: int | None = None
    enabled: bool | None = None

    def said(self) -> Said:
        """Only what was stated: apps share groups, and one that is silent must not overrule one that is not."""
        stated = {name: getattr(self, name) for name in GROUP_DEFAULTS}
        return {name: value for name, value in stated.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDeclaration:
    """A manifest as code describes it. None leaves the choice to the settings of the server that queues it."""

    external_id: str
    train: str
    input: bytes
    schedule: Schedule
    group: str = DEFAULT_GROUP
    time_zone: str = "UTC"
    exclusions: tuple[Exclusion, ...] = ()
    variance: timedelta = timedelta(0)
    misfire: Misfire = Misfire.FIRE_ONCE
    misfire_threshold: timedelta = DEFAULT_MISFIRE_THRESHOLD
    enabled: bool = True
    priority: int | None = None
    max_attempts: int | None = None
    retry_delay: timedelta | None = None
    max_retry_delay: timedelta | None = None
    retry_backoff: float | None = None
    timeout: timedelta | None = None

    @property
    def parent(self) -> str | None:
        """The external id of the manifest that it depends on."""
        return self.schedule.parent if isinstance(self.schedule, Dependent | Dormant) else None

    def said(self) -> Said:
        """Every statement. The input stands there as a digest: it may be large, and the row has it already."""
        return {
            "train": self.train,
            "input": sha256(self.input).hexdigest(),
            "group": self.group,
            "schedule": encode_schedule(self.schedule),
            "time_zone": self.time_zone,
            "exclusions": encode_exclusions(self.exclusions),
            "variance": microseconds(self.variance),
            "misfire": str(self.misfire),
            "misfire_threshold": microseconds(self.misfire_threshold),
            "enabled": self.enabled,
            "priority": self.priority,
            "max_attempts": self.max_attempts,
            "retry_delay": microseconds(self.retry_delay),
            "max_retry_delay": microseconds(self.max_retry_delay),
            "retry_backoff": self.retry_backoff,
            "timeout": microseconds(self.timeout),
        }


def differing(now_said: Said, last_said: Said) -> frozenset[str]:
    """The names of the statements that were changed, added or withdrawn."""
    names = now_said.keys() | last_said.keys()
    return frozenset(name for name in names if now_said.get(name) != last_said.get(name))


def schedule_kind(schedule: Schedule) -> str:
    """The word for its type, as the column says it."""
    return type(schedule).__name__.lower()


def microseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _MICROSECOND
