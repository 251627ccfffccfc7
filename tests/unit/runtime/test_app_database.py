"""The database of an app in a child that was forked while a thread of its parent opened it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import asyncio, os, signal, threading
from interlock.runtime.app_database import AppDatabase
from interlock.store.settings import StoreSettings

parent, opening, go_on = os.getpid(), threading.Event(), threading.Event()

def settings():
    if os.getpid() == parent:
        opening.set()
        go_on.wait()
    return StoreSettings(dsn="postgresql://nowhere.invalid/app")

database = AppDatabase(settings, emit=print)
opener = threading.Thread(target=lambda: asyncio.run(database.aget()))
opener.start()
opening.wait()
if (child := os.fork()) == 0:
    signal.alarm(30)  # a child that hangs must not outlive the test
    os._exit(asyncio.run(database.aget()) is not database._database)
go_on.set()
opener.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_that_is_forked_while_a_thread_opens_the_database_opens_its_own():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "0\n", done.stderr
