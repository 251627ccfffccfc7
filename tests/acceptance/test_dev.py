"""`interlock dev` runs a file, starts it anew when it changes, and waits while it is broken."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.harness import run_folder
from tests.harness.waiting import eventually_blocking

PATIENCE = 60
FILE = """
from interlock import Interlock, every

app = Interlock("postgresql://nowhere.invalid/production")

@app.train
async def greet() -> str:
    print("{word}", flush=True)
    return "done"

app.schedule("greeting", greet.bind(), every(seconds=1))
"""


@pytest.fixture
def home() -> Path:
    """A folder that the account of PostgreSQL can reach."""
    folder = Path(tempfile.mkdtemp(prefix="dev-", dir=run_folder.path()))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def dev(fleet, home, tmp_path):
    def start():
        env = {"INTERLOCK_HOME": str(home), "INTERLOCK_EMBEDDED_FOLDER": str(home / "pg")}
        return fleet.command(sys.executable, "-m", "interlock", "dev", "hello.py", env=env)

    return start


def write(file: Path, text: str) -> None:
    """In one step, so that no half of it is run."""
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(file)


def saw(process, text: str, stream: str = "stdout") -> None:
    eventually_blocking(lambda: text in process.output(stream), PATIENCE, text)


def test_a_change_starts_it_anew_and_a_broken_file_is_waited_for(dev, tmp_path):
    file = tmp_path / "hello.py"
    write(file, FILE.format(word="first"))
    process = dev()
    saw(process, "first")
    saw(process, "of greet completed")
    write(file, FILE.format(word="second"))
    saw(process, "second")
    write(file, "def broken(:\n")
    saw(process, "SyntaxError", "stderr")
    saw(process, "waiting for a change", "stderr")
    assert "importlib" not in process.output("stderr"), "only the user's own part of the traceback"
    write(file, FILE.format(word="third"))
    saw(process, "third")
    process.signal(signal.SIGINT)
    assert process.wait_blocking(PATIENCE) == 0


def test_the_password_of_its_database_stands_on_no_command_line(dev, home, tmp_path):
    """Everybody on a machine can read the arguments of every process."""
    write(tmp_path / "hello.py", FILE.format(word="first"))
    process = dev()
    saw(process, "first")
    password = json.loads((home / "pg" / "state").read_bytes())["password"]
    lines = b"".join(command_line(process) for process in Path("/proc").glob("[0-9]*"))
    assert str(tmp_path / "hello.py").encode() in lines
    assert password.encode() not in lines
    process.signal(signal.SIGINT)
    assert process.wait_blocking(PATIENCE) == 0


def command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_a_file_without_an_app_says_so(dev, tmp_path):
    write(tmp_path / "hello.py", "x = 1\n")
    process = dev()
    saw(process, "it must hold one Interlock app", "stderr")
    process.signal(signal.SIGTERM)
    assert process.wait_blocking(PATIENCE) == 0
