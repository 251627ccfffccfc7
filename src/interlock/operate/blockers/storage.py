"""Blockers of the database itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.operate.blockers.blocker import Blocker, Code, command
from interlock.operate.blockers.words import span
from interlock.store.migrate import SchemaState

if TYPE_CHECKING:
    from interlock.operate.blockers.facts import Facts
    from interlock.store.migrate import SchemaStatus


def schema_skew(facts: Facts) -> Blocker | None:
    return skew_of(facts.schema)


def skew_of(schema: SchemaStatus) -> Blocker | None:
    """Code and tables of different versions: servers of the other version may refuse to start."""
    if schema.state is SchemaState.CURRENT:
        return None
    older = schema.state is SchemaState.TOO_OLD
    return Blocker(
        code=Code.SCHEMA_SKEW,
        evidence=f"the schema {schema.schema} is at version {schema.found}, this code is of version {schema.needed}",
        advice="bring the schema up to date" if older else "install the version of interlock that the others run",
        command=command("schema", "apply") if older else command("schema", "status"),
        details={"found": schema.found, "needed": schema.needed},
    )


def long_transaction(facts: Facts) -> Blocker | None:
    if not facts.transactions:
        return None
    first = facts.transactions[0]
    who = first.application or first.username or "unknown"
    more = f" and {len(facts.transactions) - 1} more" if len(facts.transactions) > 1 else ""
    return Blocker(
        code=Code.LONG_TRANSACTION,
        evidence=f"backend {first.pid} ({who}, {first.state}) has had a transaction open for {span(first.age)} with"
        f" locks on tables of Interlock{more}",
        advice="commit it, or end the backend; set idle_in_transaction_session_timeout for its role",
        command=f'psql "$(interlock dsn)" -c "select pg_terminate_backend({first.pid})"',
        details={"pids": [each.pid for each in facts.transactions]},
    )
