from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import NounGroup, addressed, json_option, option
from interlock.cli.output import show_json
from interlock.store import migrate
from interlock.store.migrate import SchemaState

FINDINGS = 5


@click.group(name="schema", cls=NounGroup)
def command() -> None:
    """See and change the tables of Interlock."""


@command.command()
@json_option
@click.pass_obj
def status(options: dict[str, Any], *, as_json: bool) -> None:
    """Say which version the database has and which this code needs; `check` judges it."""
    found = asyncio.run(_status(options))
    if as_json:
        show_json(_record(found))
    else:
        versions = f"version {found.found}, this code needs {found.needed}"
        click.echo(addressed(f"schema {found.schema}: {versions} ({_words(found.state)})", options))


@command.command()
@json_option
@click.pass_obj
def apply(options: dict[str, Any], *, as_json: bool) -> None:
    """Bring the tables to this code's version; safe from any number of processes at once."""
    applied = asyncio.run(_apply(options))
    if as_json:
        show_json({"before": applied.before, "after": applied.after})
    elif applied.before == applied.after:
        click.echo(f"already at version {applied.after}")
    else:
        click.echo(f"applied, from version {applied.before} to {applied.after}")


@command.command()
@option("--after", type=click.IntRange(min=0), default=0, help="Only the migrations after this version.")
@json_option
@click.pass_obj
def sql(options: dict[str, Any], *, after: int, as_json: bool) -> None:
    """Print the SQL, for Alembic, Django migrations or a DBA; run it in one transaction."""
    script = migrate.script(choose_app(options).settings.store.schema, after=after)
    if as_json:
        show_json({"after": after, "version": migrate.code_version(), "sql": script})
    else:
        click.echo(script)


@command.command()
@json_option
@click.pass_obj
def check(options: dict[str, Any], *, as_json: bool) -> None:
    """Exit 0 when this code may use the schema, 4 when not, 5 when something of it is missing."""
    found, missing = asyncio.run(_check(options))
    if as_json:
        show_json(_record(found) | {"missing": missing})
    found.ensure_usable()
    if not as_json:
        _report(found, missing)
    if missing:
        sys.exit(FINDINGS)


def _record(found: migrate.SchemaStatus) -> dict[str, Any]:
    return {
        "schema": found.schema,
        "state": found.state,
        "found": found.found,
        "needed": found.needed,
        "oldest_code": found.oldest_code,
    }


def _report(found: migrate.SchemaStatus, missing: list[str]) -> None:
    if not missing:
        click.echo(f"schema {found.schema} is fit for use ({_words(found.state)})")
    for name in missing:
        click.echo(f"missing or invalid: {found.schema}.{name}; see `interlock schema sql` for its definition")


async def _status(options: dict[str, Any]) -> migrate.SchemaStatus:
    app = choose_app(options)
    try:
        database = await app.adatabase()
        async with database.connection() as conn:
            return await migrate.status(conn, app.settings.store.schema)
    finally:
        await app.aclose()


async def _apply(options: dict[str, Any]) -> migrate.Applied:
    app = choose_app(options)
    try:
        return await app.aapply_schema()
    finally:
        await app.aclose()


async def _check(options: dict[str, Any]) -> tuple[migrate.SchemaStatus, list[str]]:
    app = choose_app(options)
    try:
        database, schema = await app.adatabase(), app.settings.store.schema
        async with database.connection() as conn:
            return await migrate.status(conn, schema), await migrate.missing_objects(conn, schema)
    finally:
        await app.aclose()


def _words(state: SchemaState) -> str:
    return {
        SchemaState.ABSENT: "not there: run `interlock schema apply`",
        SchemaState.TOO_OLD: "too old: run `interlock schema apply`",
        SchemaState.CURRENT: "current",
        SchemaState.NEWER: "newer, and this code may use it",
        SchemaState.TOO_NEW: "too new: install a newer interlock",
    }[state]
