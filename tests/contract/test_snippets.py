"""Every example in README.md, CONTRIBUTING.md and docs/ runs, as a reader would run it.

The blocks of a page run in their order, in a scratch folder, with INTERLOCK_DSN naming a database that has the schema:

- ```python blocks share one process and one module; `await` may stand at the top level;
- ```console blocks: the lines after `$ ` run in one `sh`, with the project's programs on the PATH, and must succeed;
  other lines are output, shown to the reader and not compared;
- illustrations are marked ```text, ```sql, ```toml and so on. A block without a language, or marked bash, sh, py and
  the like, is refused: it would look like an example and never run.

A comment right before a block changes what is expected of it:

    <!-- snippet: file=hello.py -->              the block is written to that file instead of being run
    <!-- snippet: raises InvalidSchedule -->     the python block must raise this error
    <!-- snippet: exit=4 -->                     the commands must end with this code
    <!-- snippet: background -->                 the commands keep running until the end of the page; they must not fail
    <!-- snippet: skip -->                       not run; only for git, make, pip, uv and cd
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.harness.processes import ROOT
from tests.harness.snippets import Page, snippets_of

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.timeout(300)  # the tutorial waits for a killed server to be given up
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_of_the_page_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest):
    snippets = snippets_of(page, str(page.relative_to(ROOT)))
    if snippets:
        Page(tmp_path, {"INTERLOCK_DSN": request.getfixturevalue("migrated")}).run(snippets)
