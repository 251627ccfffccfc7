"""Statements without their guard, for controls: what a guard forbids must happen when it is off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from interlock.store import sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest


def take_guard_off(monkeypatch: pytest.MonkeyPatch, guards: dict[str, str], instead: str = "") -> None:
    """From now on these statements, by name, lack that piece of their text, or have another one instead."""
    compiled = sql._compiled

    def unguarded(name: str, schema: str) -> sql.Statement:
        if name not in guards:
            return compiled(name, schema)
        text = sql.source_of(name)
        assert text.count(guards[name]) == 1, f"{name} is guarded in other words by now"
        return sql.compile_statement(name, text.replace(guards[name], instead), schema)

    monkeypatch.setattr(sql, "_compiled", unguarded)


def take_patterns_off(monkeypatch: pytest.MonkeyPatch, guards: Mapping[str, Sequence[str]]) -> None:
    """The same for guards of several places, each given as a regular expression."""
    compiled = sql._compiled

    def unguarded(name: str, schema: str) -> sql.Statement:
        if name not in guards:
            return compiled(name, schema)
        text = sql.source_of(name)
        for guard in guards[name]:
            assert re.search(guard, text), f"{name} is guarded in other words than {guard!r} by now"
            text = re.sub(guard, "", text)
        return sql.compile_statement(name, text, schema)

    monkeypatch.setattr(sql, "_compiled", unguarded)
