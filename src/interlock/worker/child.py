"""The child process of `process=True`: reads a run, calls the train, writes what came of it; one at a time.

Messages are JSON with their length in front, over the pipes that were stdin and stdout. What the train itself prints
goes to stderr. A thread watches the parent's end of the pipe, so that a child whose parent died ends at once, whatever
its train is doing.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import runpy
import struct
import sys
import threading
import types
from datetime import timedelta
from functools import reduce
from typing import IO, TYPE_CHECKING, Any

from interlock.errors import InvalidInput, InvalidOutput
from interlock.model.outcome import Cancel, Outcome, Retry, Snooze
from interlock.observe.context import ExecutionContext, enter
from interlock.trains.run import run_plain
from interlock.worker.failure import kind_of, message_of, traceback_of

if TYPE_CHECKING:
    from interlock.trains.train import Train

LENGTH = struct.Struct(">Q")
MAIN = "__interlock_main__"


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_until_the_parent_is_gone, args=(requests, waiting), daemon=True).start()
    while True:
        _write(answers, _answer(waiting.get()))


def _read_until_the_parent_is_gone(requests: IO[bytes], waiting: queue.SimpleQueue[dict[str, Any]]) -> None:
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        waiting.put(json.loads(requests.read(LENGTH.unpack(head)[0])))
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        enter(ExecutionContext(**request["context"]))
        train = find_train(request["module"], request["main"], request["qualname"])
        return {"output": run_plain(train, request["input"]).decode()}
    except Outcome as outcome:
        return {"outcome": _outcome(outcome)}
    except BaseException as error:  # noqa: BLE001  SystemExit ends the run, not the child
        return {"raised": _raised(error)}


def find_train(module: str, main: str | None, qualname: str) -> Train[..., Any, Any]:
    """By import; a train of the script that was started is found by running that script under another name."""
    if module == "__main__" and main is not None:
        if MAIN not in sys.modules:
            sys.modules[MAIN] = types.ModuleType(MAIN)
            vars(sys.modules[MAIN]).update(runpy.run_path(main, run_name=MAIN))
        module = MAIN
    place: Any = importlib.import_module(module)
    train: Train[..., Any, Any] = reduce(getattr, qualname.split("."), place)
    return train


def _outcome(outcome: Outcome) -> dict[str, Any]:
    after = outcome.after.total_seconds() if isinstance(outcome, Retry | Snooze) else 0.0
    return {"kind": type(outcome).__name__, "after": after, "reason": str(outcome)}


def outcome_from(said: dict[str, Any]) -> Outcome:
    after = timedelta(seconds=said["after"])
    match said["kind"]:
        case "Retry":
            return Retry(after, said["reason"])
        case "Snooze":
            return Snooze(after, said["reason"])
        case _:
            return Cancel(said["reason"])


def _raised(error: BaseException) -> dict[str, Any]:
    failures = ((InvalidInput, "invalid_input"), (InvalidOutput, "invalid_output"))
    return {
        "failure": next((failure for kind, failure in failures if isinstance(error, kind)), "error"),
        "kind": kind_of(error),
        "message": message_of(error),
        "traceback": traceback_of(error),
    }


def _write(answers: IO[bytes], answer: dict[str, Any]) -> None:
    payload = json.dumps(answer).encode()
    answers.write(LENGTH.pack(len(payload)) + payload)
    answers.flush()


if __name__ == "__main__":
    main()
