"""The command line: one module per noun; stdout is data, stderr is talk."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `interlock` and `python -m interlock`."""
    try:
        from interlock.cli.entry import run
    except KeyboardInterrupt:  # pressed sooner than the command could begin
        sys.exit("interlock: interrupted")
    run()
