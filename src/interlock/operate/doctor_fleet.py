"""Findings about the servers that share the database, and what they left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.words import span
from interlock.operate.doctor_finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.operate.doctor import Examined
    from interlock.store.settings import StoreSettings

BESIDE_THE_POOL = 7
"""What a server opens outside its pool: keeper, listener, and the lines of dispatcher, worker (2) and outbox (2)."""


def check_fleet(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    yield from check_silent(found)
    yield from check_versions(found)
    yield from check_connections(found, settings)
    yield from check_slots(found)
    yield from check_orphans(found)


def check_silent(found: Examined) -> Iterator[Finding]:
    """Recovery marks a silent server within a lease or two; if it does not, nobody is there to judge."""
    for server in found.fleet:
        if server.silent:
            yield Finding(
                "silent_server",
                f"{server.name} has not renewed its lease for {span(server.heartbeat_age)}, and nobody marked it lost",
                "start a server: recovery runs on every one",
                "interlock run",
            )


def check_versions(found: Examined) -> Iterator[Finding]:
    versions = sorted({server.version for server in found.fleet if server.leased})
    if len(versions) > 1:
        text = f"live servers run different versions of Interlock: {', '.join(versions)}"
        yield Finding("versions", text, "finish the deploy", "interlock servers list")


def check_connections(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    live = sum(server.leased for server in found.fleet)
    needed, offered = live * (settings.pool_size + BESIDE_THE_POOL), found.instance.max_connections
    if needed > offered and not found.pooled:
        yield Finding(
            "connections",
            f"{live} live servers may open {needed} connections, PostgreSQL allows {offered}",
            "lower pool_size or raise max_connections",
        )


def check_slots(found: Examined) -> Iterator[Finding]:
    for lock in found.disagreements:
        yield Finding(
            "slots_disagree",
            f"holders of the lock {lock.name} take it for {lock.narrowest} and for {lock.widest} slots; the smaller"
            " number binds",
            "give all servers the same number",
            f"interlock locks list {lock.name}",
        )


def check_orphans(found: Examined) -> Iterator[Finding]:
    orphans = found.orphans
    if orphans is None:
        return
    if orphans.jobs:
        yield Finding(
            "orphaned_jobs",
            f"{orphans.jobs} background jobs have no execution that waits for a worker",
            "let upkeep delete them",
            "interlock upkeep run",
        )
    if orphans.executions:
        yield Finding(
            "orphaned_executions",
            f"{orphans.executions} dispatched executions have no background job and will never be claimed",
            "cancel them and enqueue the work again",
            "interlock executions list --state pending",
        )
