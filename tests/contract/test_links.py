"""Every link of the documentation leads somewhere: to a file of the project, and to a heading in it if it names one."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.harness.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def dead_links(page: Path) -> list[str]:
    return [target for target in links(page.read_text("utf-8")) if not leads_somewhere(page, target)]


def links(text: str) -> Iterator[str]:
    """The targets within the project; what stands in code is no link."""
    for found in _LINK.finditer(_CODE.sub("", _BLOCK.sub("", text))):
        target = found[1] or found[2]
        if not _ELSEWHERE.match(target):
            yield target


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    place = (page.parent / unquote(path)).resolve() if path else page
    if not place.is_relative_to(ROOT if page.is_relative_to(ROOT) else page.parent) or not place.exists():
        return False
    return not anchor or (place.suffix == ".md" and unquote(anchor) in anchors(place.read_text("utf-8")))


def anchors(text: str) -> set[str]:
    """What the headings are called in an address; one that comes again gets a number."""
    seen: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(_BLOCK.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_the_page_leads_somewhere(page: Path):
    assert dead_links(page) == []


DEAD = [
    "[a](missing.md)",
    "[a](other.md#nowhere)",
    "[a](#nowhere)",
    "[a](/other.md)",
    "[a](folder#x)",
    "[a]: missing.md",
]
ALIVE = [
    "[a](other.md)",
    "[a](other.md#two-words)",
    "[a](other.md#two-words-1)",
    "[a](other.md#codes-and_marks)",
    "[a](#here)",
    "[a](folder)",
    "[a](https://example.com/missing.md)",
    "`[a](missing.md)`",
    "```text\n[a](missing.md)\n```",
    "[a]: other.md",
]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "other.md").write_text(
        "# Two words\n\n## Two words\n\n## `Code`s: and_marks\n\n```text\n# Nowhere\n```\n"
    )
    return tmp_path / "page.md"


@pytest.mark.parametrize("text", DEAD)
def test_control_a_dead_link_is_found(page: Path, text: str):
    page.write_text(f"# Here\n\n{text}\n")
    assert len(dead_links(page)) == 1


@pytest.mark.parametrize("text", ALIVE)
def test_control_a_link_that_works_is_not_reported(page: Path, text: str):
    page.write_text(f"# Here\n\n{text}\n")
    assert dead_links(page) == []


def test_the_index_lists_every_page():
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / target.partition("#")[0]).resolve() for target in links(index.read_text("utf-8"))}
    assert [page for page in (ROOT / "docs").rglob("*.md") if page != index and page.resolve() not in listed] == []
