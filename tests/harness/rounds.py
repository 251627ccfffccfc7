"""Controls are played once by default and ten times at full scale: a race that only sometimes shows proves nothing."""

from __future__ import annotations

import pytest

ROUNDS = 10


@pytest.fixture
def round_of_control(request: pytest.FixtureRequest) -> int:
    """Which of the ten times it is."""
    return request.param


def play_controls_ten_times(metafunc: pytest.Metafunc) -> None:
    """For `pytest_generate_tests` of a folder."""
    if metafunc.function.__name__.startswith("test_control_"):
        metafunc.fixturenames.append("round_of_control")
        rounds = [1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, ROUNDS + 1))]
        metafunc.parametrize("round_of_control", rounds, indirect=True)
