"""A command as a client of the app: opened, asked, closed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlock.cli.choose import choose_app
from interlock.errors import InvalidSetting
from interlock.model.setting_values import parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interlock.app import Interlock

    _DurationType = click.ParamType[timedelta]
else:
    _DurationType = click.ParamType  # older versions of click know no type arguments

T = TypeVar("T")

LARGEST_ID = 2**63 - 1


class Amount(click.FloatRange):
    """As `Number`, with a fraction."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if isnan(found):  # no comparison with a limit finds it out
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return found


class Number(click.IntRange):
    """What is no number is called so; click would say that it is no range."""

    name = "integer"

    def _describe_range(self) -> str:
        """Help without the largest number that a column can hold: no person means that."""
        return f"x>={self.min}" if self.max == LARGEST_ID else super()._describe_range()


ID = Number(min=1, max=LARGEST_ID)
CURSOR = Number(min=0, max=LARGEST_ID)
LIMIT = Number(min=1, max=10_000)


class Duration(_DurationType):
    """A number of seconds, or one with a unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            found: timedelta = parse("duration", value, timedelta, "argument")
        except InvalidSetting:
            self.fail(f"{value!r} is not a duration such as 30s, 5m, 2h or 1d.", param, ctx)
        if found < timedelta(0):
            self.fail("a duration is not negative.", param, ctx)
        return found


DURATION = Duration()


def in_namespace(app: Interlock) -> str:
    """Where was looked for slots and timers, for those who find none."""
    namespace = app.timers.namespace
    unnamed = app.settings.runtime.name is None and app.settings.locks.lock_namespace is None
    return f" in the namespace {namespace!r}" + (": an app has its own, name it with -a" if unnamed else "")


def with_app(options: dict[str, Any], work: Callable[[Interlock], Awaitable[T]]) -> T:
    """What the work answers, done as a client of the app that the command is about."""

    async def opened() -> T:
        app = choose_app(options)
        async with app:
            return await work(app)

    return asyncio.run(opened())
