"""How long it takes until something can run: the import, the embedded server, the migrations."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from bench.frame import Measure, Report, in_turn, throwaway_database, timed
from interlock.embedded import EmbeddedServer
from interlock.store import migrate

if TYPE_CHECKING:
    from bench.frame import Arguments


async def run(arguments: Arguments) -> Report:
    rounds = arguments.rounds
    imports = await in_turn({"nothing": _interpreter("pass"), "interlock": _interpreter("import interlock")}, rounds)
    cold, warm = await asyncio.to_thread(_embedded, rounds)
    migrated = [await _migrate(arguments.dsn) for _ in range(rounds)]
    return Report(
        [
            Measure("python -c pass", "ms", _ms(imports["nothing"])),
            Measure("python -c 'import interlock'", "ms", _ms(imports["interlock"])),
            Measure("import interlock, in its interpreter", "ms", [await _own_import() for _ in range(rounds)]),
            Measure("embedded server, new folder", "ms", _ms(cold)),
            Measure("embedded server, used folder", "ms", _ms(warm)),
            Measure("migrate an empty database", "ms", _ms(migrated)),
        ],
        {"schema version": migrate.code_version()},
    )


def _interpreter(code: str):
    async def start() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        await process.wait()

    return start


async def _own_import() -> float:
    code = "import time; a = time.perf_counter(); import interlock; interlock.Interlock; print(time.perf_counter() - a)"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return float(done.stdout) * 1000


def _embedded(rounds: int) -> tuple[list[float], list[float]]:
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
            Path(folder).chmod(0o755)
            server = EmbeddedServer(Path(folder) / "pg")
            cold.append(_started(server))
            warm.append(_started(server))
    return cold, warm


def _started(server: EmbeddedServer) -> float:
    """The seconds of its start; returns when it has stopped again."""
    began = time.perf_counter()
    server.start()
    took = time.perf_counter() - began
    server.stop()
    while (server.folder / "data/postmaster.pid").exists():
        time.sleep(0.01)
    return took


async def _migrate(server: str) -> float:
    async with throwaway_database(server, migrated=False) as dsn:
        conn = await asyncpg.connect(dsn)
        try:
            return await timed(lambda: migrate.apply(conn, "interlock"))
        finally:
            await conn.close()


def _ms(seconds: list[float]) -> list[float]:
    return [second * 1000 for second in seconds]
