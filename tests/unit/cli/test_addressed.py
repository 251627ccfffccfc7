"""An advised command is about the same app and the same database as the one that advises it."""

from __future__ import annotations

import pytest

from interlock.cli.options import addressed

LINE = "interlock manifests enable 'my load'"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, LINE),
        ({"app": "shop:app"}, "interlock -a shop:app manifests enable 'my load'"),
        ({"schema": "jobs", "dsn": "postgresql://db/x"}, "interlock --dsn postgresql://db/x --schema jobs manifests"),
        ({"dsn": "postgresql://ada:secret@db/x"}, "interlock --dsn 'postgresql://ada:***@db/x' manifests"),
    ],
)
def test_the_flags_that_were_given_are_in_the_advised_command_without_a_password(monkeypatch, options, line):
    monkeypatch.delenv("INTERLOCK_APP", raising=False)
    assert addressed(LINE, options).startswith(line)


def test_each_command_in_the_words_of_an_error_gets_them():
    said = addressed("no schema 'jobs'; run: interlock schema apply, interlock doctor", {"schema": "jobs"})
    assert said == "no schema 'jobs'; run: interlock --schema jobs schema apply, interlock --schema jobs doctor"
    named = "the database interlock lacks the table interlock.train"
    assert addressed(named, {"schema": "jobs"}) == named


def test_what_the_environment_says_is_not_repeated(monkeypatch):
    monkeypatch.setenv("INTERLOCK_APP", "shop:app")
    assert addressed(LINE, {"app": "shop:app"}) == LINE


def test_a_command_inside_of_another_gets_them_too(monkeypatch):
    monkeypatch.delenv("INTERLOCK_APP", raising=False)
    line = addressed('psql "$(interlock dsn)" -c "select 1"', {"app": "shop:app"})
    assert line == 'psql "$(interlock -a shop:app dsn)" -c "select 1"'
    assert addressed("grant select on interlock.train to x", {"app": "a:b"}) == "grant select on interlock.train to x"
