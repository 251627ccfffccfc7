"""The process that runs the python blocks of one page, one after the other, in one module.

`await` may stand at the top level, as in `python -m asyncio`; all blocks share one event loop.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import os
import sys
import traceback
import types
from typing import Any


def main(answers: int) -> None:
    module = types.ModuleType("page")
    sys.modules["page"] = module
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            outcome = {"kind": "ran", **_outcome(json.loads(line), vars(module), runner)}
            os.write(answers, json.dumps(outcome).encode() + b"\n")


def _outcome(block: dict[str, Any], names: dict[str, Any], runner: asyncio.Runner) -> dict[str, Any]:
    try:
        _run(block, names, runner)
    except BaseException as error:  # noqa: BLE001  SystemExit, too, is news for the page
        return {"errors": [kind.__name__ for kind in type(error).__mro__], "traceback": traceback.format_exc()}
    return {"errors": [], "traceback": ""}


def _run(block: dict[str, Any], names: dict[str, Any], runner: asyncio.Runner) -> None:
    # Empty lines before it give every line of the block the number that it has in the page.
    source, name = "\n" * (block["line"] - 1) + block["code"], f"{block['page']}:{block['line']}"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    outcome = eval(code, names)
    if inspect.iscoroutine(outcome):
        runner.run(outcome)


if __name__ == "__main__":
    # What the examples print must not be taken for messages to the parent.
    answers = os.dup(1)
    os.dup2(2, 1)
    main(answers)
