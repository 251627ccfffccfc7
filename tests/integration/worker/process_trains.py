"""Trains for child processes, which import this module: an app without a database of its own."""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta

from interlock import Interlock, Snooze

app = Interlock("postgresql://nobody@localhost:1/none")


@app.train(process=True)
def square(n: int) -> dict[str, int]:
    print("what a train prints disturbs nobody")
    return {"square": n * n, "pid": os.getpid()}


@app.train(process=True)
def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.train(process=True)
def fail(how: str) -> str:
    if how == "snooze":
        raise Snooze(timedelta(seconds=9))
    if how == "exit":
        raise SystemExit(3)
    if how == "nul":
        return "\0"
    raise KeyError(how)


@app.train(process=True)
def spin(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123  a plain function of a user
        file.write(str(os.getpid()))
    while True:
        time.sleep(0.01)
