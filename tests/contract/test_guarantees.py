"""A promise without a test is a hope: every line of the guarantees leads to tests, and those it names exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.harness.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PAGE = ROOT / "docs" / "guarantees.md"
_TEST = re.compile(r"`(test_\w+)`")
_LINK = re.compile(r"\]\(\.\./(tests/[^)#]+)\)")


def promises(text: str) -> list[str]:
    """The lines of the tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.startswith("| situation ")]


def faults(line: str, root: Path = ROOT) -> list[str]:
    """What is wrong with the proof that a line names."""
    links = _LINK.findall(line)
    source = "\n".join(_sources(root / link for link in links))
    gone = [name for name in _TEST.findall(line) if f"def {name}(" not in source]
    return [*([] if links else ["no test"]), *gone]


def _sources(places: Iterable[Path]) -> list[str]:
    return [
        file.read_text("utf-8") for place in places for file in ([place] if place.is_file() else place.glob("*.py"))
    ]


@pytest.mark.parametrize("line", promises(PAGE.read_text("utf-8")), ids=lambda line: line.split("|")[1].strip())
def test_every_promise_leads_to_its_test(line: str):
    assert faults(line) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("| a | b | c | none |", ["no test"]),
        (
            "| a | b | c | `test_that_never_was` in [here](../tests/contract/test_guarantees.py) |",
            ["test_that_never_was"],
        ),
        ("| a | b | c | `test_every_promise_leads_to_its_test` in [here](../tests/contract/test_guarantees.py) |", []),
    ],
)
def test_control_a_promise_without_a_test_is_found(line: str, found: list[str]):
    assert faults(line) == found
