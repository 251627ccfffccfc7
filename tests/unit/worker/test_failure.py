from __future__ import annotations

from interlock.worker.failure import LONGEST_MESSAGE, LONGEST_TRACEBACK, kind_of, message_of, storable, traceback_of


class Shy(Exception):
    def __str__(self) -> str:
        raise RuntimeError


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


def test_a_builtin_goes_by_its_short_name_and_others_by_their_module():
    assert kind_of(ValueError()) == "ValueError"
    assert kind_of(Shy()).endswith("test_failure.Shy")
