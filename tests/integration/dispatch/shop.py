"""An app that enqueues, as its users declare it; imported by child processes too."""

from __future__ import annotations

from datetime import timedelta

from interlock import Cancel, Interlock
from tests.harness.profile import SHORT_LEASES

FAST = {"worker_polling_interval": timedelta(seconds=0.05), "job_dispatcher_polling_interval": timedelta(seconds=0.2)}


class Shop:
    """The app and its trains."""

    def __init__(self, dsn: str, **options) -> None:
        self.app = app = Interlock(dsn, **{**SHORT_LEASES, **FAST, "retry_delay": timedelta(seconds=0.01), **options})
        app.group("etl", priority=12, max_active_jobs=50)

        @app.train
        async def greet(name: str, times: int = 1) -> str:
            return f"hello {name}! " * times

        @app.train(priority=7, group="etl", max_attempts=2, timeout=timedelta(seconds=33), aliases=["double-before"])
        def double(number: int) -> int:
            return number * 2

        @app.train(max_attempts=2)
        async def fails(text: str) -> None:
            raise ValueError(text)

        def fetch(number: int) -> int:
            return number

        def write(number: int) -> int:
            raise KeyError(number)

        self.load = app.chain("load", fetch, write, max_attempts=1)
        attempts: list[int] = []

        @app.train
        async def flaky() -> int:
            attempts.append(1)
            if len(attempts) < 3:
                raise ConnectionError("not yet")
            return len(attempts)

        @app.train
        async def idle() -> None:
            raise Cancel("nothing to do")

        self.idle = idle
        self.greet, self.double, self.fails, self.flaky = greet, double, fails, flaky
