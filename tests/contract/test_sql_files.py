"""Every `.sql` file runs on the migrated schema through both drivers, is used, and is the only home of SQL."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import asyncpg
import psycopg
import pytest

import interlock
from interlock.store.migrate import migrations
from interlock.store.sql import Catalog, source_of

SOURCE = Path(interlock.__file__).parent
FOLDER = SOURCE / "store" / "sql"
FILES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.sql"))
PARTS = [name for name in FILES if "/_" in name]
NAMES = [name for name in FILES if name not in PARTS]
SQL = re.compile(
    r"\b(select\b.+\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+(table|index|schema)|alter\s+table)\b",
    re.IGNORECASE | re.DOTALL,
)
TABLES = sorted(
    {"schema_version"}.union(*(re.findall(r"create table /\*schema\*/(\w+)", m.text) for m in migrations()))
)
MENTION = re.compile(rf"\b(?:from|join|into|update|using)\s+(/\*schema\*/)?({'|'.join(TABLES)})\b(?!\s*\()")
"""A table of ours where a statement reads or writes it, with or without the marker."""
OTHER_HOMES: dict[str, str] = {}
"""Files outside store/ that may hold SQL, each with its reason."""


def explanation(types) -> str:
    """EXPLAIN takes no open parameters before PostgreSQL 16: NULLs stand in."""
    arguments = ", ".join(f"NULL::{name}" for name in types)
    return f"EXPLAIN EXECUTE explained{f'({arguments})' if types else ''}"


async def prepared(conn: asyncpg.Connection, statement) -> list[str]:
    """Prepare under a name that SQL can speak of; answers the types that PostgreSQL inferred."""
    await conn.execute(f"PREPARE explained AS {statement.asyncpg}")
    types = await conn.fetchval(
        "SELECT coalesce(parameter_types::text[], '{}') FROM pg_prepared_statements WHERE name = 'explained'"
    )
    assert len(types) == len(statement.parameters)
    return types


def test_there_are_files_to_check():
    assert "server/renew" in NAMES
    assert "outbox/_topics" in PARTS


@pytest.mark.parametrize("name", NAMES)
async def test_each_file_can_be_planned_through_both_drivers(name, module_database):
    statement = Catalog("interlock")[name]
    conn = await asyncpg.connect(module_database)
    try:
        await conn.prepare(statement.asyncpg)
        types = await prepared(conn, statement)
        assert await conn.fetch(explanation(types))
    finally:
        await conn.close()
    with psycopg.connect(module_database) as other:
        nothing = dict.fromkeys(statement.parameters)
        assert other.execute(f"EXPLAIN {statement.psycopg}", nothing).fetchall()


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_used(name):
    sources = (path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    assert any(f'"{name}"' in text for text in sources), f"no code names {name}"


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_shared(part):
    """Which also means that the checks of whole statements see it."""
    users = [name for name in NAMES if f"/*include:{part}*/\n" in (FOLDER / f"{name}.sql").read_text("utf-8")]
    assert len(users) > 1, f"{part} is taken in by {users}: let its text stand there"


def unmarked(text: str) -> list[str]:
    """The tables that a statement takes from the search path, which may hold another schema's."""
    named = set(re.findall(r"\b(\w+)\s+as\s+(?:(?:not\s+)?materialized\s+)?\(", text))
    code = re.sub(r"--.*", "", text)
    return [table for marker, table in MENTION.findall(code) if not marker and table not in named]


@pytest.mark.parametrize("name", NAMES)
def test_each_file_marks_its_tables(name):
    assert unmarked(source_of(name)) == []


@pytest.mark.parametrize("table", TABLES)
def test_control_an_unmarked_table_is_found(table):
    assert unmarked(f"select 1\nfrom {table} x join /*schema*/server on true -- from server") == [table]
    assert unmarked(f"with {table} as (select 1) select * from {table}") == []


def literals(tree: ast.Module) -> list[tuple[int, str]]:
    """The string literals that are not docstrings; the pieces of an f-string count each."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def sql_in(text: str) -> list[int]:
    return [line for line, literal in literals(ast.parse(text)) if SQL.search(literal)]


def test_control_the_scan_finds_sql_and_passes_over_prose():
    assert sql_in('x = "select a\\nfrom b"') == [1]
    assert sql_in('x = f"delete from {table}"') == [1]
    assert sql_in('def f():\n    "Select one from many."\n    y = "select the next one"') == []


def test_sql_lives_in_the_store_alone():
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        if "store" not in path.relative_to(SOURCE).parts[:1] and str(path.relative_to(SOURCE)) not in OTHER_HOMES
        for line in sql_in(path.read_text("utf-8"))
    }
    assert found == set()
