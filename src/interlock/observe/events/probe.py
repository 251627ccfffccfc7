"""What a server says about its probes."""

from __future__ import annotations

from typing import ClassVar

from interlock.observe.events.base import Event


class ProbesListening(Event):
    subject: ClassVar[str] = "probes"
    text: ClassVar[str] = "probes answer at http://{host}:{port}/live, /ready and /startup"
    host: str
    port: int
