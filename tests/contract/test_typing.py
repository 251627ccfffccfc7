"""The promises to users of mypy, checked with the project's own configuration."""

import re
import subprocess
import sys
from pathlib import Path

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


def mypy(cache: Path, target: Path) -> subprocess.CompletedProcess[str]:
    # A cache of its own: runs that share one at the same time disturb each other.
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(cache)]
    command = [sys.executable, "-m", "mypy", *options, str(target)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)


def test_every_accepted_and_every_refused_use_is_as_written(tmp_path):
    checked = mypy(tmp_path / "cache", ROOT / "tests" / "typing")
    assert checked.returncode == 0, checked.stdout


def test_a_wrong_argument_and_a_junction_that_does_not_fit_are_reported_where_they_are(tmp_path):
    source = tmp_path / "uses.py"
    source.write_text(MISTAKES)
    checked = mypy(tmp_path / "cache", source)
    found = dict(re.findall(r"uses\.py:(\d+): error: (.*)", checked.stdout))
    assert sorted(map(int, found)) == [10, 11, 12, 13, 14, 15], checked.stdout
    assert all('has incompatible type "int"; expected "str"' in found[str(line)] for line in range(10, 15))
    assert 'of "DeclareChain" has incompatible type' in found["15"]
