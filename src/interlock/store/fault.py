"""What an error of the database says about trying again."""

from __future__ import annotations

from interlock.errors import DatabaseUnavailable, TablesMissing

_PASSING = ("08", "25", "40", "53", "55", "57", "58")
"""SQLSTATE classes: connection, transaction state, conflict, resources, locks, intervention, system."""


def is_passing(error: BaseException) -> bool:
    """Whether the same statement may well succeed later: an outage, a conflict, a lack of something."""
    import asyncpg  # noqa: PLC0415  the driver loads on first use

    if isinstance(error, asyncpg.DataError | asyncpg.exceptions.DataError):
        return False
    if isinstance(error, DatabaseUnavailable | OSError | TimeoutError | asyncpg.InterfaceError):
        return True
    return isinstance(error, asyncpg.PostgresError) and str(error.sqlstate)[:2] in _PASSING


def is_beyond_limit(error: BaseException) -> bool:
    """Whether the statement went over a limit of the server, such as the length of the queue of its notices."""
    return getattr(error, "sqlstate", None) == "54000"


def is_forbidden(error: BaseException) -> bool:
    """Whether the user of the database lacks a privilege."""
    return getattr(error, "sqlstate", None) == "42501"


def is_read_only(error: BaseException) -> bool:
    """Whether the database takes no writes, as a standby does, or a session that was set so."""
    return getattr(error, "sqlstate", None) == "25006"


def is_undefined(error: BaseException) -> bool:
    """Whether a statement, of whichever driver, named a table, a column or a schema that is not there."""
    return isinstance(error, TablesMissing) or getattr(error, "sqlstate", None) in {"42P01", "42703", "3F000"}
