"""What the database is, or does, that keeps this code from working with it."""

from __future__ import annotations

from typing import ClassVar

from interlock.errors.base import InterlockError


class SchemaError(InterlockError):
    """The database is not ready for this code."""

    exit_code: ClassVar[int] = 4
    schema: str


class SchemaAbsent(SchemaError):
    def __str__(self) -> str:
        return f"the database has no schema {self.schema!r}; run: interlock schema apply"


class TablesMissing(SchemaAbsent):
    """The user's own connection leads to a database without our tables, or with those of an older version."""

    reason: str

    def __str__(self) -> str:
        return (
            f"the database of this connection lacks tables of the schema {self.schema!r} ({self.reason}); is it the"
            " one that the app uses? If so, run: interlock schema apply"
        )


class SchemaTooOld(SchemaError):
    found: int
    needed: int

    def __str__(self) -> str:
        return (
            f"schema {self.schema!r} is at version {self.found}, this code needs {self.needed};"
            " run: interlock schema apply"
        )


class SchemaTooNew(SchemaError):
    found: int
    supported: int
    oldest_code: int

    def __str__(self) -> str:
        return (
            f"schema {self.schema!r} is at version {self.found} and serves code from version {self.oldest_code} on,"
            f" this code is version {self.supported}; install a newer interlock"
        )


class DatabaseUnavailable(InterlockError):
    where: str
    reason: str

    def __str__(self) -> str:
        return (
            f"no database at {self.where}: {self.reason}; check that it runs"
            " and that its address (--dsn, INTERLOCK_DSN or that of the app) is right"
        )


class WriteRefused(InterlockError):
    """PostgreSQL refused what was to be written; the transaction around it goes on."""

    statement: str
    reason: str

    def __str__(self) -> str:
        return (
            f"PostgreSQL refused {self.statement}: {self.reason}; correct what is stored, it is tried again by itself"
        )
