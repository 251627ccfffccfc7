"""A timer as it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from interlock.errors import InvalidOption
from interlock.locks.options import checked_slots
from interlock.model.exclusion import Exclusion
from interlock.model.plan import refuse_never
from interlock.model.schedule import Cron, Every, in_zone, time_zone
from interlock.trains.names import checked_name

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = Callable[[], Awaitable[Any]] | Callable[[], Any]
WhenLockDown = Literal["skip", "local", "raise"]
Overrun = Literal["cancel", "warn"]
DEFAULT_RUN_TIME = timedelta(minutes=5)


class TimerKeywords(TypedDict, total=False):
    """The keywords of `app.timer` and `app.add_timer`."""

    max_concurrency: int
    runs_per_tick: int | None
    max_run_time: timedelta
    retry_on_error: bool
    spread_start: bool
    exclude: Sequence[Exclusion]
    tz: str | None
    distributed: bool | None
    when_lock_down: WhenLockDown
    local_cap: int | None
    overrun: Overrun


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A function that fires on every server, with at most `max_concurrency` running in the whole fleet."""

    name: str
    body: Body
    schedule: Every | Cron
    max_concurrency: int = 1
    runs_per_tick: int | None = None
    max_run_time: timedelta = DEFAULT_RUN_TIME
    retry_on_error: bool = False
    spread_start: bool = True
    exclude: tuple[Exclusion, ...] = ()
    tz: str = "UTC"
    distributed: bool | None = None
    when_lock_down: WhenLockDown = "skip"
    local_cap: int | None = None
    overrun: Overrun = "cancel"

    def __post_init__(self) -> None:
        checked_name("name", self.lock_name)
        check_schedule(self.schedule)
        for exclusion in self.exclude:
            _check_kind("exclude", exclusion, Exclusion, "exclusions, such as exclude.window('22:00', '06:00')")
        refuse_never(self.schedule, self.exclude, self.tz)
        checked_slots(self.max_concurrency, "max_concurrency")
        if self.runs_per_tick is not None:
            _check_count("runs_per_tick", self.runs_per_tick)
        _check_kind("max_run_time", self.max_run_time, timedelta, "a timedelta")
        if self.max_run_time <= timedelta(0):
            _wrong("max_run_time", self.max_run_time, "more than zero")
        for option in ("retry_on_error", "spread_start"):
            _check_kind(option, getattr(self, option), bool, "True or False")
        _check_kind("distributed", self.distributed, bool | None, "True, False or None")
        _check_choice("when_lock_down", self.when_lock_down, ("skip", "local", "raise"))
        _check_choice("overrun", self.overrun, ("cancel", "warn"))
        self._check_fallback()
        self._check_body()

    @property
    def lock_name(self) -> str:
        return f"timer:{self.name}"

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.body)

    def _check_fallback(self) -> None:
        if self.when_lock_down == "local":
            if self.local_cap is None:
                _wrong("local_cap", None, "how many may run on each server while the lock service is down")
            _check_count("local_cap", self.local_cap)
            if (self.local_cap or 0) > self.max_concurrency:
                _wrong("local_cap", self.local_cap, f"at most max_concurrency, {self.max_concurrency}")
        elif self.local_cap is not None:
            _wrong("local_cap", self.local_cap, "None, because only when_lock_down='local' reads it")

    def _check_body(self) -> None:
        _check_kind("function", self.body, Callable, "a function")
        parameters = inspect.signature(self.body).parameters.values()
        needed = [
            p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if needed:
            _wrong("function", needed, "a function that can be called without arguments")


def declared_timer(
    body: Body, schedule: Every | Cron, *, name: str | None, exclude: Any = (), tz: str | None = None, **options: Any
) -> Timer:
    """The timer, named by its module and function unless it has a name of its own."""
    _check_kind("function", body, Callable, "a function")
    _check_kind("exclude", exclude, list | tuple, "a list of exclusions, such as [exclude.window('22:00', '06:00')]")
    own = f"{body.__module__}.{getattr(body, '__qualname__', type(body).__qualname__)}"
    return Timer(
        name=own if name is None else checked_name("name", name),
        body=body,
        schedule=in_zone(schedule, tz),
        exclude=tuple(exclude),
        tz=time_zone(schedule, tz),
        **options,
    )


def check_schedule(found: object) -> None:
    _check_kind("schedule", found, Every | Cron, "every(…) or cron(…)")


def _check_kind(option: str, found: object, kind: Any, expected: str) -> None:
    if not isinstance(found, kind):
        _wrong(option, found, expected)


def _check_count(option: str, found: object) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        _wrong(option, found, "a whole number of at least 1")


def _check_choice(option: str, found: object, choices: tuple[str, ...]) -> None:
    if found not in choices:
        _wrong(option, found, " or ".join(repr(choice) for choice in choices))


def _wrong(option: str, found: object, expected: str) -> None:
    raise InvalidOption(option=option, found=found, expected=expected)
