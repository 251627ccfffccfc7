from __future__ import annotations

import sys

import pytest

from interlock.cli import main


class Interrupts:
    """Ctrl-C in the moment in which the command line is imported."""

    def find_spec(self, name, *_):
        if name == "interlock.cli.entry":
            raise KeyboardInterrupt


def test_an_interrupt_before_the_command_began_is_one_line_too(monkeypatch):
    monkeypatch.delitem(sys.modules, "interlock.cli.entry", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == "interlock: interrupted"
