"""A server of the demo: ends when the demo closes its end of the pipe, which a killed one does too."""

from __future__ import annotations

import os
import signal
import sys
import threading

from interlock.cli.entry import run


def _end_with_the_demo() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_demo, name="demo", daemon=True).start()
    sys.argv = ["interlock", "run"]
    run()
