"""Holding a child process at a named failpoint until the test lets it go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness.waiting import PATIENCE, eventually, eventually_blocking

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Barrier:
    """The parent's side of `failpoints`: the child creates `.reached` and waits for `.go`."""

    def __init__(self, folder: Path, failpoint: str, copy: str = "") -> None:
        """Children given the same barrier pass it together; `copy` tells apart barriers at one failpoint."""
        self.failpoint = failpoint
        # The child replaces the suffix, so that the name itself must have none.
        self._path = folder / f"{failpoint}-{copy}".rstrip("-").replace(".", "-")

    @property
    def spec(self) -> str:
        return f"{self.failpoint}=file:{self._path}"

    @property
    def is_reached(self) -> bool:
        return self._path.with_suffix(".reached").exists()

    async def reached(self, timeout: float = PATIENCE) -> None:  # noqa: ASYNC109  the timeout names the failpoint
        await eventually(lambda: self.is_reached, timeout, f"a process at {self.failpoint}")

    def reached_blocking(self, timeout: float = PATIENCE) -> None:
        eventually_blocking(lambda: self.is_reached, timeout, f"a process at {self.failpoint}")

    def release(self) -> None:
        self._path.with_suffix(".go").touch()


def armed(*barriers: Barrier, exit_at: Iterable[str] = ()) -> dict[str, str]:
    """The environment that arms these barriers in a child, and kills it at the failpoints of `exit_at`."""
    return {"INTERLOCK_FAILPOINTS": ",".join([*(b.spec for b in barriers), *(f"{name}=exit" for name in exit_at)])}
