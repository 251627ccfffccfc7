from __future__ import annotations

import pytest

from interlock.errors import InvalidOption
from interlock.web.http import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("127.0.0.1", 8080)),
        (":8080", Address("127.0.0.1", 8080)),
        ("0", Address("127.0.0.1", 0)),
        ("localhost:8080", Address("127.0.0.1", 8080)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("0.0.0.0:8080", Address("0.0.0.0", 8080)),
        ("[::]:8080", Address("::", 8080)),
    ],
)
def test_without_an_address_it_is_the_loopback_and_others_are_written_out(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["shop.example:8080", "myhost:80", "*:8080", "localhost.evil.example:1"])
def test_a_name_that_may_leave_the_machine_is_refused(text):
    with pytest.raises(InvalidOption, match="the address itself instead of a name"):
        parse_address(text)


@pytest.mark.parametrize("text", ["", ":", "x", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "8080:", "65536", "-1", "²"])
def test_what_has_no_port_is_refused_with_an_example(text):
    with pytest.raises(InvalidOption, match="PORT or ADDRESS:PORT"):
        parse_address(text)
