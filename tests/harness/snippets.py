"""The examples of a documentation page: what they are, and running them in the order in which a reader meets them."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.processes import ROOT, Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.harness.processes import Process

TIMEOUT = 60.0
SKIPPABLE = frozenset({"git", "make", "pip", "uv", "cd"})
# Names under which an example could hide from the tests.
REFUSED = {"": "text", "py": "python", "python3": "python", "pycon": "python"} | dict.fromkeys(
    ("bash", "sh", "shell", "shell-session", "zsh"), "console"
)
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<ticks>`{3,}|~{3,})(?P<language>[\w+-]*).*")
_DIRECTIVE = re.compile(r"\s*<!-- snippet: (?P<text>.+?) -->\s*")
_FORMS = re.compile(r"(?P<word>skip|background)|(?P<name>file|exit)=(?P<value>\S+)|(?P<raises>raises) (?P<error>\w+)")


class SnippetError(AssertionError):
    """A page that is written wrongly, or an example that does not do what the page says."""


@dataclass(frozen=True)
class Snippet:
    """One fenced block with what the comment before it demands."""

    page: str
    line: int
    language: str
    text: str
    demand: str = ""
    value: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The commands after `$ `, each with its continuation lines (after a backslash, or marked with `> `)."""
        commands: list[str] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                commands.append(line[2:])
            elif commands and (line.startswith("> ") or commands[-1].endswith("\\")):
                commands[-1] += "\n" + line.removeprefix("> ")
        return commands


def snippets_of(path: Path, name: str) -> list[Snippet]:
    """The blocks of a page that are run or written to a file; a page that breaks the rules is refused."""
    found = list(_blocks(path.read_text(), name))
    for snippet in found:
        _refuse_broken_rules(snippet)
    return [snippet for snippet in found if snippet.demand == "file" or snippet.language in {"python", "console"}]


def _blocks(text: str, page: str) -> Iterator[Snippet]:
    lines, demand, value = list(enumerate(text.splitlines(), start=1)), "", ""
    while lines:
        number, line = lines.pop(0)
        if directive := _DIRECTIVE.fullmatch(line):
            demand, value = _read_directive(directive["text"], f"{page}:{number}")
        elif fence := _FENCE.fullmatch(line):
            body = _take_body(lines, fence["ticks"], f"{page}:{number}")
            yield Snippet(page, number + 1, fence["language"], body, demand, value)
            demand = value = ""
        elif line.strip() and demand:
            raise SnippetError(f"{page}:{number}: the comment <!-- snippet: {demand} --> stands before no block")
    if demand:
        raise SnippetError(f"{page}: the comment <!-- snippet: {demand} --> stands before no block")


def _take_body(lines: list[tuple[int, str]], ticks: str, place: str) -> str:
    body: list[str] = []
    while lines:
        line = lines.pop(0)[1]
        if line.strip().startswith(ticks) and not line.strip().strip(ticks[0]):
            return textwrap.dedent("\n".join(body)) + "\n"
        body.append(line)
    raise SnippetError(f"{place}: the block is not closed")


def _read_directive(text: str, place: str) -> tuple[str, str]:
    form = _FORMS.fullmatch(text)
    if form is None:
        raise SnippetError(
            f"{place}: unknown demand {text!r}; known: skip, background, file=NAME, exit=N, raises ERROR"
        )
    return (form["word"] or form["name"] or form["raises"], form["value"] or form["error"] or "")


def _refuse_broken_rules(snippet: Snippet) -> None:
    if snippet.language in REFUSED:
        wanted = REFUSED[snippet.language]
        raise SnippetError(f"{snippet.place}: a block marked {snippet.language!r}; write ```{wanted}")
    if snippet.language == "console" and not snippet.commands:
        raise SnippetError(f"{snippet.place}: a console block without a command; commands start with `$ `")
    if snippet.demand == "raises" and snippet.language != "python":
        raise SnippetError(f"{snippet.place}: only a python block can raise")
    if snippet.demand in {"exit", "skip", "background"} and snippet.language != "console":
        raise SnippetError(f"{snippet.place}: {snippet.demand} is for console blocks")
    if snippet.demand == "skip" and not all(shlex.split(command)[0] in SKIPPABLE for command in snippet.commands):
        raise SnippetError(f"{snippet.place}: only commands of {', '.join(sorted(SKIPPABLE))} may be skipped")


class Page:
    """Runs snippets in a scratch folder: the python ones in one process, the commands in between."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        binaries = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self._env = {**env, "PATH": binaries, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "NO_COLOR": "1"}
        self._folder, self._fleet = folder, Fleet(folder, self._env)
        self._reader: Process | None = None
        self._background: list[tuple[Snippet, Process]] = []

    def run(self, snippets: Sequence[Snippet]) -> None:
        try:
            for snippet in snippets:
                self._run_one(snippet)
            for snippet, process in self._background:
                self._check(snippet, process.returncode or 0, process)
        finally:
            self._fleet.close()

    def _run_one(self, snippet: Snippet) -> None:
        match snippet:
            case Snippet(demand="skip"):
                pass
            case Snippet(demand="file", value=name):
                self._write(snippet, name)
            case Snippet(language="python"):
                self._execute(snippet)
            case Snippet(demand="background"):
                self._background.append((snippet, self._shell(snippet)))
            case _:
                process = self._shell(snippet)
                self._check(snippet, process.wait_blocking(TIMEOUT), process)

    def _write(self, snippet: Snippet, name: str) -> None:
        target = (self._folder / name).resolve()
        if not target.is_relative_to(self._folder.resolve()):
            raise SnippetError(f"{snippet.place}: {name} lies outside the scratch folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(snippet.text)

    def _execute(self, snippet: Snippet) -> None:
        if self._reader is None:
            self._reader = self._fleet.command(
                sys.executable, "-W", "error", "-m", "tests.harness.snippet_reader", listens=True
            )
        self._reader.tell({"code": snippet.text, "page": snippet.page, "line": snippet.line})
        raised = self._reader.expect_blocking("ran", TIMEOUT)
        expected = snippet.value if snippet.demand == "raises" else None
        if expected not in (raised["errors"] or [None]):
            found = raised["traceback"] or "no error"
            raise SnippetError(f"{snippet.place}: expected {expected or 'no error'}, found {found}\n{self._said()}")

    def _said(self) -> str:
        """What the commands in the background said until now."""
        return "\n".join(f"--- {title}\n{text}" for title, text in self._fleet.sections())

    def _shell(self, snippet: Snippet) -> Process:
        return self._fleet.command("sh", "-c", "\n".join(["set -e", *snippet.commands]))

    def _check(self, snippet: Snippet, code: int, process: Process) -> None:
        expected = int(snippet.value) if snippet.demand == "exit" else 0
        if code != expected:
            said = process.output("stdout") + process.output("stderr")
            raise SnippetError(f"{snippet.place}: exit code {code} instead of {expected}\n{said}")
