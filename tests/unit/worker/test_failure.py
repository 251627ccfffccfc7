from __future__ import annotations

import pytest

from interlock.model.failure import (
    LONGEST_MESSAGE,
    LONGEST_TRACEBACK,
    OURS,
    kind_of,
    message_of,
    storable,
    traceback_of,
)


class Shy(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Deadly(Exception):
    def __str__(self) -> str:
        raise SystemExit


def raised(error: BaseException) -> BaseException:
    try:
        raise error  # noqa: TRY301  it needs a traceback of its own
    except BaseException as caught:  # noqa: BLE001  it is what the test is about
        return caught


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_missing():
    message = message_of(ValueError("a" * 5_000_000 + "z"))
    assert len(message) < LONGEST_MESSAGE + 100
    assert message.startswith("a")
    assert message.endswith("z")
    assert "characters left out" in message


def test_a_traceback_of_ten_megabytes_is_shortened_and_still_names_the_error():
    text = traceback_of(raised(ValueError("x" * 10_000_000)))
    assert len(text) < LONGEST_TRACEBACK + 100
    assert text.startswith("Traceback")


def test_what_postgresql_cannot_hold_is_written_out():
    assert storable("a\0b\ud800c") == "a\\x00b\\ud800c"


def test_an_error_whose_text_raises_is_described_all_the_same():
    assert "RuntimeError" in message_of(Shy())
    assert "Shy" in traceback_of(raised(Shy()))


def test_an_error_whose_text_would_end_the_process_is_described_all_the_same():
    assert "SystemExit" in message_of(Deadly())
    assert "Deadly" in traceback_of(raised(Deadly()))


def test_a_builtin_goes_by_its_short_name_and_others_by_their_module():
    assert kind_of(ValueError()) == "ValueError"
    assert kind_of(Shy()).endswith("test_failure.Shy")


def through_us(call):
    """What it raises, called by code that lies in our package."""
    names = {}
    exec(compile("def lead(call): call()", OURS + "worker/lead.py", "exec"), names)
    try:
        names["lead"](call)
    except Exception as error:  # noqa: BLE001  it is what was asked for
        return error.with_traceback(error.__traceback__.tb_next)


def no_customer():
    raise LookupError("no customer 7")


def wrapped():
    raise LookupError("no order") from through_us(no_customer)


@pytest.mark.parametrize("body", [no_customer, wrapped])
def test_a_traceback_begins_where_the_code_of_the_user_does(body):
    text = traceback_of(through_us(body))
    assert "lead.py" not in text
    assert "in no_customer" in text
    assert text.startswith("Traceback (most recent call last):\n")


def test_a_traceback_that_is_ours_alone_is_shown_whole():
    text = traceback_of(through_us("not to be called"))
    assert "lead.py" in text
    assert "TypeError" in text
