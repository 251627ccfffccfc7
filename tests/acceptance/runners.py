"""Servers that submit work to a runner, and the runner itself, as children of a test."""

from __future__ import annotations

from typing import Any

from interlock.dispatch.submitters.http import HttpSubmitter
from tests.harness.child import tell
from tests.harness.working import an_app

SECRET = "a secret of some length"


async def serve(dsn: str, name: str, port: int, options: dict[str, Any], *, runner: bool) -> None:
    """The child: one of the two, until it is told to stop."""
    app = an_app(dsn, name, runner_secret=SECRET, **options)
    app.add_submitter(HttpSubmitter(f"http://127.0.0.1:{port}", secret=SECRET), trains=["work", "announced"])
    supervisor, keeper = await (app._server(None, runner=f"127.0.0.1:{port}") if runner else app._server(["dispatch"]))
    with supervisor.handle_signals():
        await supervisor.start()
        tell("up", server=keeper.server)
        try:
            await supervisor._stop_wanted.wait()
        finally:
            await supervisor.stop()
            await app.aclose()
    tell("stopped", forced=supervisor.forced)


async def run(dsn: str, name: str, port: int, options: dict[str, Any]) -> None:
    await serve(dsn, name, port, options, runner=True)


async def submit(dsn: str, name: str, port: int, options: dict[str, Any]) -> None:
    await serve(dsn, name, port, options, runner=False)
