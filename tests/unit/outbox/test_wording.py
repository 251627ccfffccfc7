"""Nothing promises more than at-least-once: "exactly once" stands in the project's texts only where it is denied."""

from __future__ import annotations

import re

import pytest

from tests.harness.processes import ROOT

CLAIM = re.compile(r"exactly[\s-]+once", re.IGNORECASE)
DENIED = re.compile(r"\b(not|never|no|nothing|nobody|refuses|cannot|isn't|without|instead of)\b", re.IGNORECASE)
PLACES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.sql"),
]


def promises(text: str) -> list[str]:
    """The sentences that claim it without a negation."""
    sentences = re.split(r"(?<=[.!?:])\s+|\n\s*\n", text)
    return [each for each in sentences if CLAIM.search(each) and not DENIED.search(each)]


def test_no_text_promises_delivery_exactly_once():
    found = {str(path.relative_to(ROOT)): promises(path.read_text("utf-8")) for path in PLACES}
    assert {place: said for place, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Messages are delivered exactly once.", 1),
        ("It is exactly-once, and fast.", 1),
        ("Nothing here is exactly once.", 0),
        ("Never described as\nexactly-once.", 0),
    ],
)
def test_control_a_promise_is_found_and_a_denial_is_not(text, count):
    assert len(promises(text)) == count
