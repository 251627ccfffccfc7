"""The generated reference pages say what the code says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from scripts import reference

ROOT = Path(__file__).parents[2]


def test_every_page_is_up_to_date():
    assert reference.outdated() == [], "run: make docs"


def test_control_a_page_that_lags_behind_is_named(tmp_path, monkeypatch):
    for name, text in reference.pages().items():
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    assert reference.outdated() == []
    (tmp_path / "errors.md").write_text("old", "utf-8")
    (tmp_path / "events.md").unlink()
    assert reference.outdated() == ["errors.md", "events.md"]
    reference.write()
    assert reference.outdated() == []


def test_the_pages_do_not_depend_on_the_terminal_the_hash_seed_or_the_settings_of_this_machine():
    hostile = {"COLUMNS": "40", "PYTHONHASHSEED": "7", "INTERLOCK_LEASE": "99s", "INTERLOCK_JSON": "1", "NO_COLOR": "1"}
    script = "import sys; from scripts import reference; sys.stdout.buffer.write(repr(reference.pages()).encode())"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | hostile, cwd=ROOT, capture_output=True, check=True
    )
    assert done.stdout.decode() == repr(reference.pages())
