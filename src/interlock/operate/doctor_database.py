"""Findings about PostgreSQL, the schema in it and the way to it."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from interlock.operate.blockers.words import span
from interlock.operate.doctor_finding import Finding
from interlock.store.migrate import SchemaState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.operate.doctor import Examined
    from interlock.store.settings import StoreSettings

OLDEST = 140000
HOT = frozenset({"work_queue", "execution", "background_job", "server", "manifest", "lock_slot", "outbox"})
DEAD_AT_LEAST = 10_000
LONGEST_SKEW = timedelta(seconds=2)


def check_database(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    yield from check_version(found)
    yield from check_schema(found)
    yield from check_privileges(found, settings)
    yield from check_bloat(found, settings)
    yield from check_transactions(found)
    yield from check_pooler(found, settings)
    yield from check_clock(found)


def check_version(found: Examined) -> Iterator[Finding]:
    instance = found.instance
    if instance.version < OLDEST:
        yield Finding("version", f"this is PostgreSQL {instance.version_text}", "upgrade it to 14 or newer")
    if instance.read_only:
        yield Finding("read_only", "this connection can only read: a standby, or a read-only role", "name the primary")
    if not instance.autovacuum:
        yield Finding(
            "autovacuum",
            "autovacuum or track_counts is off: dead rows of the queue stay and every claim gets slower",
            "switch it on and reload PostgreSQL",
            "alter system set autovacuum = on",
        )


def check_schema(found: Examined) -> Iterator[Finding]:
    schema = found.schema
    if schema is None:
        return
    match schema.state:
        case SchemaState.ABSENT:
            yield Finding("schema", f"there is no schema {schema.schema}", "create it", "interlock schema apply")
        case SchemaState.TOO_OLD:
            text = f"the schema is at version {schema.found}, this code needs {schema.needed}"
            yield Finding("schema", text, "bring it up to date", "interlock schema apply")
        case SchemaState.TOO_NEW | SchemaState.NEWER:
            text = f"the schema is at version {schema.found}, this code is of version {schema.needed}"
            yield Finding("schema", text, "install the version of interlock that the others run")
        case SchemaState.CURRENT:
            pass
    if found.missing:
        yield Finding(
            "missing",
            f"missing or invalid: {', '.join(found.missing)}",
            "create them again as the script says; an invalid index is dropped first",
            "interlock schema sql",
        )


def check_privileges(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    for thing, lacking in groupby(found.privileges, key=lambda pair: pair[0]):
        privileges = ", ".join(privilege for _, privilege in lacking)
        kind, _, name = thing.partition(" ")
        target = name if kind == "schema" else f"{kind} {settings.schema}.{name}"
        grant = f"grant {privileges} on {'schema ' if kind == 'schema' else ''}{target} to {found.instance.username}"
        text = f"the user {found.instance.username} lacks {privileges} on {thing}"
        yield Finding("privileges", text, "grant it, as the owner of the schema", grant)


def check_bloat(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    for table in found.bloat:
        if table.table in HOT and table.dead >= DEAD_AT_LEAST and table.dead > table.live:
            yield Finding(
                "bloat",
                f"the table {table.table} has {table.dead:,} dead rows to {table.live:,} live ones",
                "vacuum it; if that does not help, an old transaction keeps them",
                f"vacuum (analyze) {settings.schema}.{table.table}",
            )


def check_transactions(found: Examined) -> Iterator[Finding]:
    for old in found.transactions:
        who = f" ({old.application}, {old.state})" if old.application else f" ({old.state})"
        yield Finding(
            "long_transaction",
            f"{old.what}{who} has been open for {span(old.age)}: no row that died since then can be removed",
            "end it, and set idle_in_transaction_session_timeout for its role",
            old.remedy,
        )


def check_pooler(found: Examined, settings: StoreSettings) -> Iterator[Finding]:
    if found.notices:
        return
    pooler = "a pooler stands in between, and" if found.pooled else "it looks as if a pooler stood in between, because"
    yield Finding(
        "notices",
        f"{pooler} a notice that was sent here was not heard here: work waits for the next poll",
        "use a session pool or the server itself, or accept the polling intervals",
    )
    if settings.statement_cache_size != 0:
        yield Finding(
            "prepared_statements",
            "in transaction mode a pooler hands each statement to another backend, which does not know it",
            "set statement_cache_size to 0",
            "export INTERLOCK_STATEMENT_CACHE_SIZE=0",
        )


def check_clock(found: Examined) -> Iterator[Finding]:
    if abs(found.skew) > LONGEST_SKEW:
        way = "ahead of" if found.skew > timedelta(0) else "behind"
        yield Finding(
            "clock",
            f"the clock of this machine is {span(found.skew)} {way} the database's",
            "synchronise both; the database's decides, but logs and calls with times of their own mislead",
        )
