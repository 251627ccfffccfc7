"""The settings page lists every option of the dataclasses with its true default, and nothing else."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock.model.setting_values import expectation, parse
from interlock.settings import Settings, known_options, sections, variable
from scripts.setting_meanings import MEANINGS, SHORTHANDS

PAGE = Path(__file__).parents[2] / "docs/reference/settings.md"
ROW = re.compile(
    r"^\| `(?P<name>\w+)` \| `(?P<default>[^`]*)` \| (?P<expects>.*?) \| (?P<meaning>.+) \|$", re.MULTILINE
)


def rows() -> dict[str, re.Match[str]]:
    return {row["name"]: row for row in ROW.finditer(PAGE.read_text("utf-8"))}


def default_of(name: str) -> Any:
    return getattr(getattr(Settings(), known_options()[name][0]), name)


def test_the_page_lists_the_options_and_no_others():
    assert set(rows()) == set(known_options())


def test_every_option_has_a_meaning_and_no_meaning_is_left_over():
    assert set(MEANINGS) == set(known_options())
    assert {variable(name) for name in SHORTHANDS} == {"INTERLOCK_POLLING_INTERVAL"}


@pytest.mark.parametrize("name", sorted(known_options()))
def test_the_default_on_the_page_is_what_the_code_reads_from_it(name):
    kind, shown = known_options()[name][1], rows()[name]["default"]
    read = () if (shown == "none" and default_of(name) == ()) else parse(name, shown, kind, "the page")
    assert read == default_of(name)


@pytest.mark.parametrize("name", sorted(known_options()))
def test_the_page_says_what_an_option_expects(name):
    assert rows()[name]["expects"].replace("\\|", "|") == expectation(known_options()[name][1])


def test_options_have_one_name_in_one_section_and_cannot_be_changed():
    names = [field.name for component in sections().values() for field in fields(component)]
    assert len(names) == len(set(names))
    for section, component in sections().items():
        with pytest.raises(AttributeError):
            setattr(getattr(Settings(), section), fields(component)[0].name, None)


def test_durations_are_typed_and_not_bare_numbers():
    timed = re.compile(r"(_interval|_timeout|_delay|_retention|_window|_ttl|^lease|^heartbeat|_threshold)$")
    assert [
        name for name, (_, kind) in known_options().items() if timed.search(name) and timedelta not in _options(kind)
    ] == []


def _options(kind: Any) -> tuple[Any, ...]:
    return (kind, *getattr(kind, "__args__", ()))
