from __future__ import annotations

import pytest

from interlock.embedded.state import State


def test_state_survives_a_round_trip_and_is_private(tmp_path):
    state = State.fresh().on_port(5433)
    state.write(tmp_path / "state")
    assert State.read(tmp_path / "state") == state
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    assert [place.name for place in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"{}", b'{"password": "x", "port": "y"}', b"\xff"])
def test_damaged_state_is_no_state(tmp_path, damaged):
    (tmp_path / "state").write_bytes(damaged)
    assert State.read(tmp_path / "state") is None


def test_missing_state_is_no_state(tmp_path):
    assert State.read(tmp_path / "state") is None


def test_the_password_is_in_the_address_and_in_no_representation():
    state = State.fresh().on_port(5433)
    assert state.dsn == f"postgresql://interlock:{state.password}@127.0.0.1:5433/interlock"
    assert state.password not in repr(state)
