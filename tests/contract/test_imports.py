"""`import interlock` is quick, because drivers, the command line and validation load when they are used."""

from __future__ import annotations

import json
import subprocess
import sys

LIMIT_SECONDS = 0.150
HEAVY = ["asyncpg", "click", "msgspec", "rich"]
TIMED_IMPORT = """
import json, sys, time
before = time.perf_counter()
import interlock
print(json.dumps({"seconds": time.perf_counter() - before, "modules": sorted(sys.modules)}))
"""


def test_import_takes_less_than_150_ms():
    best = min(_import()["seconds"] for _ in range(5))
    assert best < LIMIT_SECONDS


def test_import_does_not_load_the_driver_the_command_line_or_validation():
    assert [name for name in HEAVY if name in _import()["modules"]] == []


def _import() -> dict:
    run = subprocess.run([sys.executable, "-c", TIMED_IMPORT], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(run.stdout)
