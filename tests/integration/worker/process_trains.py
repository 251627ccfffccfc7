"""Trains for child processes, which import this module: an app without a database of its own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from interlock import Interlock, Snooze

app = Interlock("postgresql://nobody@localhost:1/none")
fork = multiprocessing.get_context("fork")


@app.train(process=True)
def square(n: int) -> dict[str, int]:
    print("what a train prints disturbs nobody")
    return {"square": n * n, "pid": os.getpid()}


def half(n: int) -> int:
    return n // 2


halve = app.train(half, name="halve", process=True)


@app.train(process=True)
def log() -> None:
    logging.getLogger("mine").info("said in a child")


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
    """Writes who it is and whom it started."""
    command = subprocess.Popen(["sleep", "600"])
    Path(path).write_text(f"{os.getpid()} {command.pid}")
    while True:
        time.sleep(0.01)


@app.train(process=True)
def until_told(path: str, told: str) -> int:
    Path(path).write_text(f"{os.getpid()}")
    while not Path(told).exists():
        time.sleep(0.01)
    return os.getpid()


@app.train(process=True)
def read_all() -> list[str]:
    command = subprocess.run(["cat"], stdout=subprocess.PIPE, text=True, check=True)
    return [sys.stdin.read(), command.stdout]


@app.train(process=True)
def crash_before_what_it_forked() -> None:
    fork.Process(target=time.sleep, args=(600,)).start()
    os.kill(os.getpid(), signal.SIGSEGV)


@app.train(process=True)
def write_from_what_the_forked_forked(path: str) -> int | None:
    """Two files are opened between the forks, because the first process had two pipes."""
    opened = fork.Process(target=_open_and_fork, args=(path,))
    opened.start()
    opened.join()
    return opened.exitcode


def _open_and_fork(path: str) -> None:
    with Path(path).open("w") as one, Path(path).open("a") as other:
        writing = fork.Process(target=_write, args=(one.fileno(), other.fileno()))
        writing.start()
        writing.join()
    sys.exit(writing.exitcode)


def _write(*files: int) -> None:
    for file in files:
        os.write(file, b"x")


@app.train(process=True)
def end_what_it_started() -> list[int | None]:
    command, forked = subprocess.Popen(["sleep", "600"]), fork.Process(target=time.sleep, args=(600,))
    forked.start()
    command.terminate()
    forked.terminate()
    forked.join()
    return [command.wait(), forked.exitcode]
