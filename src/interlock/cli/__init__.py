"""The command line: one module per noun; stdout is data, stderr is talk."""

from __future__ import annotations


def main() -> None:
    """The entry point of `interlock` and `python -m interlock`."""
    from interlock.cli.entry import run

    run()
