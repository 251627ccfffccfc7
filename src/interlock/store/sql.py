"""The SQL of Interlock lives in `sql/<table>/<verb>.sql`; this module turns those files into statements.

A file names its parameters (`:limit`) and marks every table with the schema marker (`/*schema*/server`). It is compiled
once per schema, for both parameter styles: `$1` for asyncpg and `%(limit)s` for psycopg. The schema name is the only
text ever put into a statement, and it is validated first.

What several statements say in the same words stands once, in a part: a file named `_<noun>.sql`, which a statement
takes in by a line of its own, `/*include:outbox/_topics*/`. A part takes in no other part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from textwrap import indent
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidSchemaName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from interlock.store.connection import Connection, Record

_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,39}")
_TOKEN = re.compile(
    r"""
    (?P<schema>/\*schema\*/)
    | (?P<opaque> '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ | --[^\n]* | /\*.*?\*/ | :: )
    | :(?P<parameter>[a-z_][a-z0-9_]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_INCLUDE = re.compile(r"^(?P<indent> *)/\*include:(?P<part>[a-z_]+/_[a-z_]+)\*/$", re.MULTILINE)


def check_schema_name(name: object) -> str:
    """The name, if it may be put into SQL text; a typed error otherwise."""
    if not isinstance(name, str) or _SCHEMA_NAME.fullmatch(name) is None:
        raise InvalidSchemaName(found=name)
    return name


@dataclass(frozen=True, slots=True)
class Statement:
    """One `.sql` file, compiled for a schema and for both drivers."""

    name: str
    parameters: tuple[str, ...]
    asyncpg: str
    psycopg: str
    schema: str

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        if len(values) != len(self.parameters) or not all(name in values for name in self.parameters):
            raise TypeError(f"{self.name} takes {self.parameters}, got {tuple(values)}")
        return [values[name] for name in self.parameters]

    async def fetch(self, conn: Connection, **values: Any) -> list[Record]:
        return await conn.fetch(self.asyncpg, *self.arguments(values))

    async def fetchrow(self, conn: Connection, **values: Any) -> Record | None:
        return await conn.fetchrow(self.asyncpg, *self.arguments(values))

    async def fetchval(self, conn: Connection, **values: Any) -> Any:
        return await conn.fetchval(self.asyncpg, *self.arguments(values))

    async def execute(self, conn: Connection, **values: Any) -> str:
        return await conn.execute(self.asyncpg, *self.arguments(values))


class Catalog:
    """The statements of one schema: `catalog["server/renew"]`."""

    def __init__(self, schema: str) -> None:
        self.schema = check_schema_name(schema)

    def __getitem__(self, name: str) -> Statement:
        return _compiled(name, self.schema)


@cache
def _compiled(name: str, schema: str) -> Statement:
    return compile_statement(name, source_of(name), schema)


def source_of(name: str) -> str:
    """The text of a statement, with its parts in place."""
    return put_parts(name, _file(name), _file)


def put_parts(name: str, text: str, read: Callable[[str], str]) -> str:
    """Each part stands as deep as the line that takes it in."""

    def part(line: re.Match[str]) -> str:
        try:
            return indent(read(line["part"]).strip(), line["indent"])
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{name} takes in {line['part']}, and there is no such part") from error

    whole = _INCLUDE.sub(part, text)
    if "/*include:" in whole:
        raise ValueError(f"{name} has an include that is not a line of its own, names no part, or stands in a part")
    return whole


def _file(name: str) -> str:
    from importlib import resources  # noqa: PLC0415  loads a lot that an import of the app should not pay for

    return resources.files("interlock.store").joinpath("sql", *f"{name}.sql".split("/")).read_text("utf-8")


def compile_statement(name: str, text: str, schema: str) -> Statement:
    """Number the parameters in the order of their first appearance and put the schema in place."""
    parameters: dict[str, int] = {}
    asyncpg, psycopg = [f"/* interlock {name} */ "], [f"/* interlock {name} */ "]
    for piece, parameter in _pieces(text.strip(), f'"{check_schema_name(schema)}".'):
        if parameter is None:
            asyncpg.append(piece)
            psycopg.append(piece.replace("%", "%%"))
        else:
            asyncpg.append(f"${parameters.setdefault(parameter, len(parameters) + 1)}")
            psycopg.append(f"%({parameter})s")
    return Statement(name, tuple(parameters), "".join(asyncpg), "".join(psycopg), schema)


def put_schema(text: str, schema: str) -> str:
    """A script without parameters (a migration) with the schema in place of its markers."""
    quoted = f'"{check_schema_name(schema)}".'
    return "".join(piece if parameter is None else f":{parameter}" for piece, parameter in _pieces(text, quoted))


def _pieces(text: str, quoted_schema: str) -> Iterator[tuple[str, str | None]]:
    """Plain text as (text, None), a parameter as ("", name)."""
    end = 0
    for token in _TOKEN.finditer(text):
        yield text[end : token.start()], None
        end = token.end()
        if token["parameter"]:
            yield "", token["parameter"]
        else:
            yield quoted_schema if token["schema"] else token[0], None
    yield text[end:], None
