from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

SchemaApply = Literal["auto", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where the database is and how it is talked to."""

    dsn: str | None = field(default=None, repr=False)  # it may hold a password
    schema: str = "interlock"
    schema_apply: SchemaApply = "auto"
    pool_size: int = 10
    statement_cache_size: int | None = None
    tick_statement_timeout: timedelta = timedelta(seconds=10)
    tick_idle_timeout: timedelta = timedelta(seconds=3)
