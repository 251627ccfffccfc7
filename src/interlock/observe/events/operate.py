"""What people do to work and to its switches."""

from __future__ import annotations

from typing import ClassVar

from interlock.observe.events.base import Event


class Acted(Event):
    """A command changed something; the audit holds what exactly. Of several targets it names the first."""

    subject: ClassVar[str] = "operate"
    actor: str
    via: str
    action: str
    target_kind: str
    target: str
    targets: int = 1

    def sentence(self) -> str:
        act = "{actor} ({via}): {action} {target_kind} {target}"
        return act if self.targets == 1 else act + ", {targets} in all"
