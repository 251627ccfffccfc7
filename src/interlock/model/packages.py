"""Packages that only some need: looked for when what needs them is chosen, not when it is first used."""

from __future__ import annotations

from interlock.errors import PackageMissing


def require(package: str, *, needed_by: str) -> None:
    """Refuse a choice that could not work; nothing is loaded."""
    from importlib.util import find_spec  # noqa: PLC0415  only those who choose so pay for it

    if find_spec(package) is None:
        raise PackageMissing(package=package, needed_by=needed_by)
