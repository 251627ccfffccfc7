"""The page about the tables says of every column and every index what the migrations made of it."""

from __future__ import annotations

import re

import asyncpg
import pytest

from tests.harness.processes import ROOT

PAGE = (ROOT / "docs" / "reference" / "tables.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
_COLUMNS = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| (.+?) \| (yes|no) \|", re.MULTILINE)
_COLUMNS_THAT_EXIST = """
    select c.relname as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as null
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'interlock'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
"""
_INDEXES_THAT_EXIST = """
    select i.relname as name, c.relname as table
    from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
    where c.relnamespace = 'interlock'::regnamespace and not x.indisprimary
"""
_SHORT = {"timestamp with time zone": "timestamptz"}


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


def described() -> dict[str, str]:
    """Type and nullability of each column, as the page says."""
    rows = ((table, row) for table, body in SECTIONS.items() for row in _COLUMNS.findall(body))
    return {
        f"{table}.{name}": f"{kind}, null: {null}"
        for table, (names, kind, null) in rows
        for name in re.findall(r"\w+", names)
    }


async def test_every_table_is_described_with_its_columns_types_and_nulls(conn):
    existing = {}
    for row in await conn.fetch(_COLUMNS_THAT_EXIST):
        kind = _SHORT.get(row["type"], row["type"])
        existing[f"{row['table']}.{row['name']}"] = f"{kind}, null: {'yes' if row['null'] else 'no'}"
    assert dict(sorted(described().items() - existing.items())) == dict(sorted(existing.items() - described().items()))


async def test_every_index_is_named_where_its_table_is_described(conn):
    indexes = [(row["table"], row["name"]) for row in await conn.fetch(_INDEXES_THAT_EXIST)]
    assert [name for table, name in indexes if name not in SECTIONS.get(table, "")] == []


def test_the_list_of_tables_names_each_that_is_described():
    assert re.findall(r"^\| \[`(\w+)`\]\(#\1\)", PAGE, re.MULTILINE) == list(
        dict.fromkeys(column.partition(".")[0] for column in described())
    )
