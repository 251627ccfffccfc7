"""The child's side of a fleet: runs `module:function` with JSON arguments, and tells the parent what happens.

Usage in a child: `from tests.harness.child import tell`, then `tell("started", job=7)`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
from functools import reduce
from typing import Any


def tell(kind: str, **data: Any) -> None:
    """Send one message to the parent; a single write, so that threads do not mix their lines."""
    sys.stdout.flush()
    os.write(1, json.dumps({"kind": kind, "pid": os.getpid(), **data}, default=str).encode() + b"\n")


def run(target: str, arguments: list[Any]) -> None:
    module, _, path = target.partition(":")
    function = reduce(getattr, path.split("."), importlib.import_module(module))
    outcome = function(*arguments)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
