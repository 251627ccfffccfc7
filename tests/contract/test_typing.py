"""The promises to users of mypy, checked with the project's own configuration."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

MISTAKES = """
from interlock.trains.registry import Registry
app = Registry()
@app.train
async def greet(name: str, times: int = 1) -> str:
    return name * times
def number(text: str) -> int:
    return len(text)
async def uses() -> None:
    greet.bind(3)
    greet.enqueue(3)
    await greet.aenqueue(3)
    greet.using(key="k").enqueue(3)
    await greet.using(key="k").aenqueue(3)
    app.chain("backwards", number, greet)
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, list[str]]:
    """What one run of mypy says of what must be refused (True) and of all else: to check the package takes a while."""
    folder = tmp_path_factory.mktemp("typing")
    mistakes = folder / "uses.py"
    mistakes.write_text(MISTAKES)
    # A cache of its own: runs that share one at the same time disturb each other.
    options = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(folder / "cache"),
        "--no-error-summary",
    ]
    command = [sys.executable, "-m", "mypy", *options, str(ROOT / "tests" / "typing"), str(mistakes)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert checked.returncode == 1, checked.stdout + checked.stderr
    lines = checked.stdout.splitlines()
    return {refused: [line for line in lines if ("uses.py:" in line) is refused] for refused in (True, False)}


def test_every_accepted_and_every_refused_use_is_as_written(reports):
    assert reports[False] == []


def test_a_wrong_argument_and_a_junction_that_does_not_fit_are_reported_where_they_are(reports):
    said = "\n".join(reports[True])
    found = dict(re.findall(r"uses\.py:(\d+): error: (.*)", said))
    assert sorted(map(int, found)) == [10, 11, 12, 13, 14, 15], said
    assert all('has incompatible type "int"; expected "str"' in found[str(line)] for line in range(10, 15))
    assert 'of "DeclareChain" has incompatible type' in found["15"]
