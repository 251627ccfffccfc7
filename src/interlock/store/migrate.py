"""Numbered migrations, applied in one transaction under an advisory lock.

The number of the last migration is the version of the code that ships it. Each row of `schema_version` says which
oldest code may use the schema from then on, so that the servers of a rolling deploy work side by side.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from interlock.errors import SchemaAbsent, SchemaTooNew, SchemaTooOld
from interlock.failpoints import reach
from interlock.store.sql import Catalog, check_schema_name, put_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.store.connection import Connection

_OLDEST_CODE = re.compile(r"^-- oldest-code: (\d+)$", re.MULTILINE)
# A migration may rewrite a large table: the limit of other commands is not for it.
_SCRIPT_SECONDS = 24 * 60 * 60.0
_LOOK_AGAIN_SECONDS = 0.1
# One whose process stands still loses its lock, so that it does not keep a whole deploy from starting.
_STANDSTILL = "30s"
_CREATED = re.compile(r"^create (?:unique )?(?:table|index|sequence) (?:/\*schema\*/)?(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def oldest_code(self) -> int:
        found = _OLDEST_CODE.search(self.text)
        if found is None:
            raise AssertionError(f"migration {self.name} does not say which oldest code may use it")
        return int(found[1])


class SchemaState(StrEnum):
    ABSENT = "absent"
    TOO_OLD = "too_old"
    CURRENT = "current"
    NEWER = "newer"
    TOO_NEW = "too_new"


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """What the database has, against what this code needs."""

    schema: str
    found: int
    needed: int
    oldest_code: int

    @property
    def state(self) -> SchemaState:
        if self.found == 0:
            return SchemaState.ABSENT
        if self.found < self.needed:
            return SchemaState.TOO_OLD
        if self.found == self.needed:
            return SchemaState.CURRENT
        return SchemaState.NEWER if self.oldest_code <= self.needed else SchemaState.TOO_NEW

    def ensure_usable(self) -> None:
        """Raise what the user has to know when this code must not use the schema."""
        match self.state:
            case SchemaState.ABSENT:
                raise SchemaAbsent(schema=self.schema)
            case SchemaState.TOO_OLD:
                raise SchemaTooOld(schema=self.schema, found=self.found, needed=self.needed)
            case SchemaState.TOO_NEW:
                raise SchemaTooNew(
                    schema=self.schema, found=self.found, supported=self.needed, oldest_code=self.oldest_code
                )
            case SchemaState.CURRENT | SchemaState.NEWER:
                pass


@dataclass(frozen=True, slots=True)
class Applied:
    before: int
    after: int


@cache
def migrations() -> tuple[Migration, ...]:
    files = resources.files("interlock.store").joinpath("migrations").iterdir()
    return tuple(
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in sorted(files, key=lambda file: file.name)
        if file.name.endswith(".sql")
    )


def code_version() -> int:
    return migrations()[-1].version


async def status(conn: Connection, schema: str) -> SchemaStatus:
    """What the database has; reads only."""
    sql = Catalog(schema)
    found, oldest = 0, 0
    if await sql["schema_version/exists"].fetchval(conn, schema=sql.schema):
        row = await sql["schema_version/read"].fetchrow(conn)
        found, oldest = (row["version"], row["oldest_code"]) if row else (0, 0)
    return SchemaStatus(sql.schema, found, code_version(), oldest)


async def check(conn: Connection, schema: str) -> SchemaStatus:
    """The status, or the typed error that says what to run."""
    found = await status(conn, schema)
    found.ensure_usable()
    return found


async def apply(conn: Connection, schema: str) -> Applied:
    """Bring the schema to this code's version; any number of processes may try at once. Never goes back."""
    sql = Catalog(schema)
    while (found := await status(conn, schema)).found < found.needed:
        if (applied := await _apply_if_first(conn, sql)) is not None:
            return applied
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    if found.state is SchemaState.TOO_NEW:
        found.ensure_usable()
    return Applied(found.found, found.found)


async def _apply_if_first(conn: Connection, sql: Catalog) -> Applied | None:
    """Not so while another process applies them, or has done so by now."""
    async with conn.transaction(isolation="read_committed"):
        await sql["session/limit"].execute(conn, statement_timeout="0", idle_timeout=_STANDSTILL)
        if not await sql["schema_version/try_lock"].fetchval(conn, name=f"interlock migrations of {sql.schema}"):
            return None
        before = await status(conn, sql.schema)
        await reach("migrate.before_script")
        if before.found >= before.needed:
            return None
        await conn.execute(script(sql.schema, after=before.found), timeout=_SCRIPT_SECONDS)
    return Applied(before.found, before.needed)


def script(schema: str, *, after: int = 0) -> str:
    """The migrations after a version as one SQL script, to be run in one transaction by any tool."""
    pending = [migration for migration in migrations() if migration.version > after]
    return "\n".join([*([_preamble(schema)] if after == 0 else []), *(_section(each, schema) for each in pending)])


async def missing_objects(conn: Connection, schema: str) -> list[str]:
    """Tables, indexes and sequences that the applied migrations made and that are gone or unusable."""
    sql = Catalog(schema)
    found = await status(conn, schema)
    expected = sorted(_created(each for each in migrations() if each.version <= found.found))
    rows = await sql["schema_version/missing"].fetch(conn, schema=sql.schema, names=expected)
    return [row["name"] for row in rows]


def _created(applied: Iterable[Migration]) -> set[str]:
    return {name for migration in applied for name in _CREATED.findall(migration.text)}


def _preamble(schema: str) -> str:
    name = check_schema_name(schema)
    return put_schema(
        f'create schema if not exists "{name}";\n\n'
        "create table if not exists /*schema*/schema_version (\n"
        "    version integer primary key,\n"
        "    name text not null,\n"
        "    oldest_code integer not null,\n"
        "    applied_at timestamptz not null default clock_timestamp()\n"
        ");\n",
        schema,
    )


def _section(migration: Migration, schema: str) -> str:
    text = _OLDEST_CODE.sub("", migration.text).strip()
    return put_schema(
        f"-- {migration.name}\n{text}\n"
        "insert into /*schema*/schema_version (version, name, oldest_code)"
        f" values ({migration.version}, '{migration.name}', {migration.oldest_code});\n",
        schema,
    )
