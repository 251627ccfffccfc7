"""The examination: what is wrong with the database, the fleet and the settings, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.operate.doctor_database import check_database
from interlock.operate.doctor_fleet import check_fleet
from interlock.operate.doctor_settings import check_settings
from interlock.store import migrate
from interlock.store.checkup import Checkup, notices_arrive
from interlock.store.migrate import SchemaState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.operate.doctor_finding import Finding
    from interlock.operate.explain_surface import Sections
    from interlock.store.checkup import Bloat, Disagreement, FleetMember, Instance, OldTransaction, Orphans
    from interlock.store.connection import Connection
    from interlock.store.database import Database
    from interlock.store.migrate import SchemaStatus

OLD = timedelta(minutes=5)
USABLE = (SchemaState.CURRENT, SchemaState.NEWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was found; the checks only read it."""

    instance: Instance
    schema: SchemaStatus | None
    """None: the user may not look."""
    pooled: bool
    """Whether something stands between this client and PostgreSQL that gives it other backends."""
    notices: bool
    skew: timedelta
    missing: Sequence[str] = ()
    privileges: Sequence[tuple[str, str]] = ()
    bloat: Sequence[Bloat] = ()
    transactions: Sequence[OldTransaction] = ()
    fleet: Sequence[FleetMember] = ()
    disagreements: Sequence[Disagreement] = ()
    orphans: Orphans | None = None


async def examine(database: Database, settings: Sections, *, old: timedelta = OLD) -> list[Finding]:
    """All findings; of a schema that cannot be used or read, nothing inside is looked at."""
    found = await look(database, old=old)
    return [*check_database(found, settings.store), *check_fleet(found, settings.store), *check_settings(settings)]


async def look(database: Database, *, old: timedelta = OLD) -> Examined:
    checkup, name = Checkup(database.sql), database.settings.schema
    async with database.connection() as conn:
        instance, privileges = await checkup.instance(conn), await checkup.privileges(conn)
        readable = not any(privilege in ("select", "usage") for _, privilege in privileges)
        schema = await migrate.status(conn, name) if readable else None
        inside = await _inside(conn, checkup, name) if schema is not None and schema.state in USABLE else {}
        skew, transactions = await checkup.skew(conn), await checkup.transactions(conn, older_than=old)
        pooled = conn.get_server_pid() != instance.backend
    return Examined(
        instance=instance,
        schema=schema,
        pooled=pooled,
        notices=await notices_arrive(database),
        skew=skew,
        privileges=privileges,
        transactions=transactions,
        **inside,
    )


async def _inside(conn: Connection, checkup: Checkup, schema: str) -> dict[str, Any]:
    return {
        "missing": await migrate.missing_objects(conn, schema),
        "bloat": await checkup.bloat(conn),
        "fleet": await checkup.fleet(conn),
        "disagreements": await checkup.disagreements(conn),
        "orphans": await checkup.orphans(conn),
    }
