from __future__ import annotations

import pytest

from interlock.errors import InvalidSchemaName
from interlock.store import sql
from interlock.store.sql import Catalog, check_schema_name, compile_statement, put_parts, put_schema, source_of

PARTS = {"outbox/_topics": "-- why\nselect :a\n    from t\n", "outbox/_nested": "/*include:outbox/_topics*/\n"}


def compiled(text: str, schema: str = "s"):
    return compile_statement("table/verb", text, schema)


def asyncpg(text: str) -> str:
    return compiled(text).asyncpg.removeprefix("/* interlock table/verb */ ")


def psycopg(text: str) -> str:
    return compiled(text).psycopg.removeprefix("/* interlock table/verb */ ")


def test_parameters_are_numbered_by_first_appearance_and_one_used_twice_has_one_number():
    statement = compiled("select :b, :a, :b")
    assert statement.parameters == ("b", "a")
    assert statement.asyncpg.endswith("select $1, $2, $1")
    assert statement.psycopg.endswith("select %(b)s, %(a)s, %(b)s")
    assert statement.arguments({"a": 1, "b": 2}) == [2, 1]


@pytest.mark.parametrize(
    "text",
    [
        "select 'at :noon'",
        "select 'it''s :noon'",
        "-- keep :this\nselect 1",
        "select 1 -- and :that",
        "/* neither\n:this */ select 1",
        "do $$ begin perform ':a', :b; end $$",
        "do $body$ select $$ :a $$ $body$",
        'select ":column" from t',
        'select "a "" :b" from t',
        "select 1::text",
        "select '{}'::jsonb::text",
        "select x := 1",
    ],
)
def test_what_only_looks_like_a_parameter_is_left_alone(text):
    assert compiled(text).parameters == ()
    assert asyncpg(text) == psycopg(text) == text


def test_a_parameter_may_be_cast_and_may_stand_beside_strings_and_comments():
    text = "select :a::text, ':b', \":c\", $$:d$$ -- :e\n, :f /* :g */"
    assert compiled(text).parameters == ("a", "f")
    assert asyncpg(text) == "select $1::text, ':b', \":c\", $$:d$$ -- :e\n, $2 /* :g */"


def test_a_percent_sign_is_doubled_for_psycopg_alone():
    text = "select 'a%', 7 % :n -- 50%"
    assert asyncpg(text) == "select 'a%', 7 % $1 -- 50%"
    assert psycopg(text) == "select 'a%%', 7 %% %(n)s -- 50%%"


def test_the_schema_marker_becomes_the_quoted_schema_except_inside_a_string():
    assert asyncpg("select '/*schema*/' from /*schema*/server") == "select '/*schema*/' from \"s\".server"


def test_a_script_keeps_everything_but_the_marker():
    text = "create table /*schema*/t (a text default ':x%');\nselect 1::int, :left;"
    assert put_schema(text, "s") == text.replace("/*schema*/", '"s".')


def test_each_statement_says_its_name_to_who_watches_the_server():
    assert Catalog("s")["server/renew"].asyncpg.startswith("/* interlock server/renew */ ")


@pytest.mark.parametrize("values", [{}, {"a": 1}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "c": 3}])
def test_missing_surplus_and_misspelt_parameters_are_refused(values):
    with pytest.raises(TypeError, match="table/verb takes"):
        compiled("select :a, :b").arguments(values)


def test_a_statement_that_does_not_exist_is_an_error_and_not_an_empty_statement():
    with pytest.raises(FileNotFoundError):
        Catalog("s")["server/explode"]


def with_parts(text: str) -> str:
    return put_parts("table/verb", text, PARTS.__getitem__)


def test_a_part_stands_in_place_of_its_line_and_as_deep():
    text = "with x as (\n    /*include:outbox/_topics*/\n)\n/*include:outbox/_topics*/\norder by 1"
    expected = "with x as (\n    -- why\n    select :a\n        from t\n)\n-- why\nselect :a\n    from t\norder by 1"
    assert with_parts(text) == expected


def test_the_parameters_and_tables_of_a_part_are_those_of_the_statement():
    statement = Catalog("s")["outbox/next_due"]
    assert 'select o.topic from "s".outbox o' in statement.asyncpg
    assert "/*" not in statement.asyncpg.removeprefix("/* interlock outbox/next_due */ ")
    assert compiled(with_parts("select :b, (\n/*include:outbox/_topics*/\n)")).parameters == ("b", "a")


@pytest.mark.parametrize(
    "text",
    [
        "select /*include:outbox/_topics*/",
        "/*include:outbox/_topics*/ select 1",
        "/*include:outbox/claim*/",
        "/*include:_topics*/",
        "/*include:../outbox/_topics*/",
        "/*include: outbox/_topics*/",
        "/*include:outbox/_nested*/",
    ],
)
def test_an_include_that_would_stay_a_comment_is_refused(text):
    with pytest.raises(ValueError, match="table/verb has an include"):
        with_parts(text)


def test_a_part_that_does_not_exist_is_an_error_that_names_it_and_the_statement(monkeypatch):
    monkeypatch.setattr(
        sql, "_file", lambda name, file=sql._file: file(name) if "/_" in name else "/*include:server/_nothing*/"
    )
    with pytest.raises(FileNotFoundError, match="server/renew takes in server/_nothing"):
        source_of("server/renew")


@pytest.mark.parametrize("name", ["interlock", "_", "a" * 40, "tenant_1", "pgx", "select"])
def test_a_plain_name_is_accepted(name):
    assert check_schema_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 41,
        'a"b',
        "a'b",
        "a;drop schema public",
        "a b",
        "a.b",
        "a-b",
        "a--",
        "Interlock",
        "pg_catalog",
        "pg_",
        "1a",
        "interlock\n",
        "\ninterlock",
        "a\0",
        "é",
        "a٣",
        "a%s",
        "a:b",
        "a$$",
        None,
        7,
        b"interlock",
        ["interlock"],
    ],
)
def test_a_hostile_schema_name_never_reaches_a_statement(name):
    for use in (check_schema_name, Catalog, lambda n: compiled("select 1", n), lambda n: put_schema("select 1", n)):
        with pytest.raises(InvalidSchemaName) as refused:
            use(name)
        assert repr(name) in str(refused.value)
