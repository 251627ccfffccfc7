"""Which frames of a traceback are ours: they lead to the user's code, are the same every time and help nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

OURS = str(Path(__file__).parents[1]) + os.sep


def from_the_users_code(trace: TracebackType | None) -> TracebackType | None:
    """The part that begins there; the whole one where all frames are ours."""
    part = trace
    while part is not None and part.tb_frame.f_code.co_filename.startswith(OURS):
        part = part.tb_next
    return part or trace
