"""The names that users import are a contract: all of them are listed, sorted, and there."""

from __future__ import annotations

import ast
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING

import interlock
from interlock import Interlock

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTED: list[str] = list(getattr(interlock, "__all__", []))


def test_the_public_names_are_sorted_and_listed_once():
    assert sorted(set(LISTED)) == LISTED


def test_every_listed_name_exists():
    assert [name for name in LISTED if not hasattr(interlock, name)] == []


def test_every_public_name_is_listed():
    offered = {name for name in _offered(_source()) if not name.startswith("_")}
    assert offered - set(LISTED) == set()


def test_every_listed_name_is_shown_by_dir():
    assert set(LISTED) - set(dir(interlock)) == set()


def test_every_async_method_of_an_app_has_its_blocking_twin():
    """Opening and closing are what a `with` block does; the database itself is for async code only."""
    offered = {name for name in dir(Interlock) if not name.startswith("_")}
    lonely = {name for name in offered if iscoroutinefunction(getattr(Interlock, name)) and name[1:] not in offered}
    assert lonely == {"aopen", "aclose", "adatabase"}


def test_a_name_that_is_bound_offered_lazily_or_typed_counts_as_public():
    source = """
from typing import TYPE_CHECKING
from interlock.errors import LeaseLost
if TYPE_CHECKING:
    from interlock.app import Interlock as Interlock
_EXPORTS = {"cron": "interlock.model.schedule"}
VERSION: str = "1"
def every(): ...
"""
    assert set(_offered(source)) == {"LeaseLost", "Interlock", "cron", "_EXPORTS", "VERSION", "every"}


def _source() -> str:
    assert interlock.__file__ is not None
    return Path(interlock.__file__).read_text()


def _offered(source: str) -> Iterator[str]:
    """What the package binds, for type checkers or at run time, without what it imports for its own use."""
    for statement in ast.parse(source).body:
        body = statement.body if isinstance(statement, ast.If) else [statement]
        for inner in body:
            yield from _bound_by(inner)


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.ImportFrom(module=module, level=level, names=names) if level or (module or "").startswith("interlock"):
            yield from (alias.asname or alias.name for alias in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            yield name
            if name == "_EXPORTS":
                yield from _keys(value)


def _keys(value: ast.expr | None) -> Iterator[str]:
    """The names of a mapping that is written out; one that is computed could hide names, and is refused."""
    assert isinstance(value, ast.Dict), "_EXPORTS is written as a plain dict"
    for key in value.keys:
        assert isinstance(key, ast.Constant), "_EXPORTS has plain strings as keys"
        yield str(key.value)
