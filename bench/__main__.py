"""Runs the benchmarks of this folder, all or those that are named."""

from __future__ import annotations

import argparse
import asyncio
import json
import pkgutil
import platform
import sys
import tempfile
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench
from bench.frame import Arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.frame import Report

NOT_BENCHMARKS = {"__main__", "frame", "peer", "wake"}


def main(argv: Sequence[str] | None = None) -> int:
    names = sorted(found.name for found in pkgutil.iter_modules(bench.__path__) if found.name not in NOT_BENCHMARKS)
    parser = _parser(names)
    chosen = parser.parse_args(argv)
    if unknown := set(chosen.names) - set(names):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    with _server(chosen.dsn) as dsn:
        arguments = Arguments(dsn=dsn, rounds=chosen.rounds, scale=chosen.scale)
        records = {name: _run(name, arguments, quiet=chosen.json) for name in chosen.names or names}
    if chosen.json:
        print(json.dumps({"python": platform.python_version(), "machine": platform.platform(), "benchmarks": records}))
    return 0


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run the benchmarks, all or those named.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--dsn", help="a server to measure on; default: an embedded one, made for this run")
    parser.add_argument("--rounds", type=int, default=5, help="how often to measure (default: 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the worlds that are measured (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


@contextmanager
def _server(dsn: str | None) -> Iterator[str]:
    """The server that was named, or one that lives as long as the run; durable, as in production."""
    if dsn is not None:
        yield dsn
        return
    from interlock.embedded import EmbeddedServer

    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with EmbeddedServer(Path(folder) / "pg") as embedded:
            yield embedded.start()
        _await_end(Path(folder) / "pg/data/postmaster.pid")


def _await_end(pid_file: Path) -> None:
    import time

    deadline = time.monotonic() + 10
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _run(name: str, arguments: Arguments, *, quiet: bool) -> dict[str, Any]:
    module = import_module(f"bench.{name}")
    report: Report = asyncio.run(module.run(arguments))
    record = report.record()
    if not quiet:
        _show(name, str(module.__doc__).splitlines()[0], record)
    return record


def _show(name: str, title: str, record: dict[str, Any]) -> None:
    print(f"{name}: {title}")
    width = max(len(measure["name"]) for measure in record["measures"])
    print(f"  {'':{width}}  {'median':>10} {'best':>10} {'worst':>10}  unit")
    for measure in record["measures"]:
        figures = " ".join(f"{measure[key]:>10.4g}" for key in ("median", "best", "worst"))
        print(f"  {measure['name']:{width}}  {figures}  {measure['unit']}")
    for fact, value in record["facts"].items():
        print(f"  {fact}: {value}")
    print()


if __name__ == "__main__":
    sys.exit(main())
