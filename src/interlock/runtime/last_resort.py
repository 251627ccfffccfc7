"""The end of a server that was forced to stop and whose event loop does not get to it, because a body blocks it.

A thread of the interpreter's own waits, which needs neither the event loop nor the lock that a body may hold. It writes
where every thread stands to standard error and ends the process with 1. What ran is recovered like that of any server
that was killed.
"""

from __future__ import annotations

import faulthandler

STANDARD_ERROR = 2
BLOCKED = 5.0  # seconds for the event loop to hear of it
SLOW = 15.0  # seconds for what it does then


def end_in(seconds: float) -> None:
    """Unless it is called off; a later call counts instead of this one."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=STANDARD_ERROR)


def call_off() -> None:
    faulthandler.cancel_dump_traceback_later()
