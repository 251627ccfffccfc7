"""The child process of `process=True`: reads a run, calls the train, writes what came of it; one at a time.

Messages are JSON with their length in front, over the pipes that were stdin and stdout. What the train itself prints
goes to stderr, and it finds nothing to read. A thread watches the parent's end of the pipe, so that a child whose
parent died ends at once, whatever its train is doing.

Whether and when a run stops is for the parent to say. A service manager signals every process of a service and a
terminal every process in front of it, so the child leads a process group of its own and passes over what asks it to
end. What the train starts is in that group and ends with the child; a process that it forks is an ordinary one again.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import runpy
import signal
import struct
import sys
import threading
import types
from datetime import timedelta
from functools import cache, partial, reduce
from typing import IO, Any

from interlock.errors import InvalidInput, InvalidOutput
from interlock.model.failure import kind_of, message_of, traceback_of
from interlock.model.outcome import Cancel, Outcome, Retry, Snooze
from interlock.observe.context import ExecutionContext, enter
from interlock.trains.registry import Registry
from interlock.trains.run import run_plain
from interlock.trains.train import Train

LENGTH = struct.Struct(">Q")
MAIN = "__interlock_main__"
LEFT_TO_THE_PARENT = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _stand_apart(requests.fileno(), answers.fileno())
    _log_as_the_parent()
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read_until_the_parent_is_gone, args=(requests, waiting), daemon=True).start()
    while True:
        _write(answers, _answer(waiting.get()))


def _stand_apart(*pipes: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    os.setpgid(0, 0)
    for number in LEFT_TO_THE_PARENT:
        signal.signal(number, _pass_over)  # not SIG_IGN, which a command that the train runs would inherit
    masks: list[Any] = []
    os.register_at_fork(
        before=partial(_hold_back, masks),
        after_in_parent=partial(_let_through, masks),
        after_in_child=partial(_be_ordinary, list(pipes), masks),
    )


def _log_as_the_parent() -> None:
    """Before the module of the train is imported: a logging setup of its own is the last word."""
    _, *chosen = sys.argv
    del sys.argv[1:]
    if chosen:
        from interlock.observe.logs import configure_logging  # noqa: PLC0415  who logs otherwise does without

        level, format = chosen  # noqa: A001  as the flag
        configure_logging(sys.stderr, int(level), "json" if format == "json" else "human")


def _pass_over(*_: object) -> None:
    """The parent lets the run end, or kills this process."""


def _hold_back(masks: list[Any]) -> None:
    """What tells a forked process to end must not come to it before it is an ordinary one: it would be passed over."""
    masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, LEFT_TO_THE_PARENT))


def _let_through(masks: list[Any]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop())


def _be_ordinary(pipes: list[int], masks: list[Any]) -> None:
    """Held open by a process that outlives this one, the pipes would hide its end. Whoever is forked from that process
    inherits what was done here, and what it did itself since then.
    """
    if pipes:
        for number in LEFT_TO_THE_PARENT:
            signal.signal(number, signal.SIG_DFL)
        _close(pipes)
    _let_through(masks)


def _close(pipes: list[int]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for pipe in pipes:  # their numbers stay taken: a file of the train's must not get one, to be closed with them
        os.dup2(nothing, pipe, inheritable=False)
    os.close(nothing)
    pipes.clear()


def _read_until_the_parent_is_gone(requests: IO[bytes], waiting: queue.SimpleQueue[dict[str, Any]]) -> None:
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        waiting.put(json.loads(requests.read(LENGTH.unpack(head)[0])))
    os.killpg(0, signal.SIGKILL)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        enter(ExecutionContext(**request["context"]))
        train = find_train(request["module"], request["main"], request["qualname"], request["context"]["train"])
        return {"output": run_plain(train, request["input"]).decode()}
    except Outcome as outcome:
        return {"outcome": _outcome(outcome)}
    except BaseException as error:  # noqa: BLE001  SystemExit ends the run, not the child
        return {"raised": _raised(error)}


def find_train(module: str, main: str | None, qualname: str, name: str) -> Train[..., Any, Any]:
    """By import; a train of the script that was started is found by running that script under another name. Where the
    train has a variable of its own, the name of the function leads to the function.
    """
    if module == "__main__" and main is not None:
        if MAIN not in sys.modules:
            script = types.ModuleType(MAIN)
            vars(script).update(runpy.run_path(main, run_name=MAIN))
            sys.modules[MAIN] = script
        module = MAIN
    place: Any = importlib.import_module(module)
    found: Any = reduce(getattr, qualname.split("."), place)
    return found if isinstance(found, Train) else _declared(found, name)


@cache
def _declared(function: Any, name: str) -> Train[..., Any, Any]:
    return Registry().train(name=name)(function)


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
