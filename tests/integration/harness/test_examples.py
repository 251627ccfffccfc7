"""The runner of documentation examples finds the faults that a page can have."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.harness.snippets import Page, SnippetError, snippets_of
from tests.harness.waiting import NeverHappenedError

if TYPE_CHECKING:
    from pathlib import Path


def run_page(folder: Path, text: str) -> None:
    page = folder / "page.md"
    page.write_text(textwrap.dedent(text))
    scratch = folder / "scratch"
    scratch.mkdir()
    Page(scratch, {"INTERLOCK_DSN": "postgresql://nowhere"}).run(snippets_of(page, "page.md"))


def test_blocks_of_a_page_build_on_each_other(tmp_path):
    run_page(
        tmp_path,
        """
        <!-- snippet: file=hello.py -->
        ```python
        GREETING = "hello"
        ```
        ```python
        import asyncio, os
        from hello import GREETING
        await asyncio.sleep(0)
        ```
        <!-- snippet: raises LookupError -->
        ```python
        {}[GREETING]
        ```
        ```console
        $ python -c "import hello; print(hello.GREETING)" \\
            > said
        hello
        $ test "$INTERLOCK_DSN" = postgresql://nowhere
        ```
        <!-- snippet: exit=4 -->
        ```console
        $ exit 4
        ```
        ```python
        assert open("said").read() == "hello\\n"
        ```
        <!-- snippet: skip -->
        ```console
        $ pip install interlock
        ```
        """,
    )


FAULTS = {
    "an error": "```python\n1 / 0\n```",
    "no error": "<!-- snippet: raises ValueError -->\n```python\n1\n```",
    "another error": "<!-- snippet: raises ValueError -->\n```python\n{}[1]\n```",
    "an error after an await": "```python\nimport asyncio\nawait asyncio.sleep(0)\nraise SystemExit(1)\n```",
    "a failing command": "```console\n$ false\n$ true\n```",
    "another exit code": "<!-- snippet: exit=4 -->\n```console\n$ true\n```",
    "a console block without commands": "```console\nls\n```",
    "a skip of our own commands": "<!-- snippet: skip -->\n```console\n$ git status\n$ interlock run\n```",
    "a skip of python": "<!-- snippet: skip -->\n```python\n1\n```",
    "a block without a language": "```\nls\n```",
    "a block that hides": "```bash\nls\n```",
    "an unknown demand": "<!-- snippet: sometimes -->\n```python\n1\n```",
    "a demand for nothing": "<!-- snippet: skip -->\ntext",
    "an open block": "```python\n1\n",
    "a file elsewhere": "<!-- snippet: file=../x.py -->\n```python\n1\n```",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS.keys())
def test_a_faulty_page_is_refused(tmp_path, text):
    with pytest.raises(SnippetError, match=r"page\.md"):
        run_page(tmp_path, text)


def test_a_python_block_that_ends_its_process_is_reported(tmp_path):
    with pytest.raises(NeverHappenedError, match="ended with 7"):
        run_page(tmp_path, "```python\nimport os\nos._exit(7)\n```")
