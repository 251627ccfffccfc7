from __future__ import annotations

from interlock.cli.pause import resume as command

__all__ = ["command"]
