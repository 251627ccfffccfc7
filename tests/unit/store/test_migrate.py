from __future__ import annotations

import re

import pytest

from interlock.errors import InvalidSchemaName, SchemaAbsent, SchemaTooNew, SchemaTooOld
from interlock.store.migrate import Migration, SchemaState, SchemaStatus, code_version, migrations, script

BIND_LOOKALIKE = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
"""What SQLAlchemy's text() reads as a bind parameter."""


@pytest.mark.parametrize(
    ("found", "oldest_code", "state"),
    [
        (0, 0, SchemaState.ABSENT),
        (4, 1, SchemaState.TOO_OLD),
        (5, 5, SchemaState.CURRENT),
        (6, 5, SchemaState.NEWER),
        (6, 1, SchemaState.NEWER),
        (6, 6, SchemaState.TOO_NEW),
    ],
)
def test_the_state_follows_from_both_versions_and_the_oldest_code(found, oldest_code, state):
    assert SchemaStatus("s", found=found, needed=5, oldest_code=oldest_code).state is state


@pytest.mark.parametrize(("found", "error"), [(0, SchemaAbsent), (4, SchemaTooOld), (6, SchemaTooNew)])
def test_an_unusable_schema_raises_what_to_do(found, error):
    with pytest.raises(error, match=r"run: interlock schema apply|install a newer interlock"):
        SchemaStatus("s", found=found, needed=5, oldest_code=6).ensure_usable()


@pytest.mark.parametrize("found", [5, 6])
def test_a_current_or_newer_schema_is_usable(found):
    SchemaStatus("s", found=found, needed=5, oldest_code=5).ensure_usable()


def test_migrations_are_numbered_without_gaps_and_each_says_its_oldest_code():
    assert [each.version for each in migrations()] == list(range(1, code_version() + 1))
    assert all(re.fullmatch(r"\d{4}_[a-z_]+", each.name) for each in migrations())
    assert all(1 <= each.oldest_code <= each.version for each in migrations())


def test_a_migration_that_does_not_say_its_oldest_code_is_refused():
    with pytest.raises(AssertionError, match="0007_forgetful"):
        _ = Migration(7, "0007_forgetful", "create table t ();").oldest_code


@pytest.mark.parametrize("text", ["select ':x'", "select :x", "values (':x'::text)"])
def test_control_the_search_finds_bind_lookalikes(text):
    assert BIND_LOOKALIKE.findall(text) == ["x"]


@pytest.mark.parametrize("after", range(code_version()))
def test_no_other_migration_tool_can_misread_the_script(after):
    text = script("interlock", after=after)
    assert text.strip()
    assert BIND_LOOKALIKE.findall(text) == []
    assert "%" not in text
    assert "/*schema*/" not in text


def test_the_script_after_the_last_version_is_empty():
    assert script("interlock", after=code_version()) == ""


def test_the_script_refuses_a_hostile_schema_name():
    with pytest.raises(InvalidSchemaName):
        script('x"; drop schema public; --')
