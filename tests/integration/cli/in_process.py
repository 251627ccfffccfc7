"""The command line inside the test's own process: as a user meets it, without the price of a new interpreter."""

from __future__ import annotations

import json
import os
import sys
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.cli import entry
from tests.harness.commands import path_in
from tests.integration.cli.conftest import clean_environment

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_numbers = count(1)


class Said(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def data(self) -> Any:
        return json.loads(self.stdout)


class Console:
    """A user in an empty folder, with no settings but those of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._monkeypatch, self._capsys, self.folder = monkeypatch, capsys, folder
        self.always: list[str] = []
        self.done: set[str] = set()
        for name in set(os.environ) - set(clean_environment()):
            monkeypatch.delenv(name)
        monkeypatch.setenv("INTERLOCK_HOME", str(folder / "home"))
        monkeypatch.chdir(folder)
        monkeypatch.syspath_prepend(folder)

    def module(self, code: str) -> str:
        """Write a module of the user's; answers its name, which no other test has."""
        name = f"module_of_a_user_{os.getpid()}_{next(_numbers)}"
        (self.folder / f"{name}.py").write_text(code, "utf-8")
        return name

    def __call__(self, *arguments: object) -> Said:
        self.done.add(path_in(arguments))
        self._capsys.readouterr()
        self._monkeypatch.setattr(sys, "argv", ["interlock", *map(str, arguments), *self.always])
        exit_code = 0
        try:
            entry.run()
        except SystemExit as left:
            exit_code = int(left.code or 0)
        return Said(exit_code, *self._capsys.readouterr())

    def json(self, *arguments: object) -> Any:
        """The data of a command that must succeed."""
        said = self(*arguments, "--json")
        assert said.exit_code == 0, said
        return said.data

    def refused(self, exit_code: int, *arguments: object) -> str:
        """The one line of a command that must fail so, without data and without a traceback."""
        said = self(*arguments)
        assert (said.exit_code, said.stdout) == (exit_code, ""), said
        (line,) = said.stderr.splitlines()
        assert line.startswith("interlock: ")
        return line.removeprefix("interlock: ")
