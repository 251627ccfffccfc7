"""What an app offers for declaring timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from interlock.timers.timer import TimerKeywords, check_schedule, declared_timer
from interlock.trains.options import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from interlock.model.schedule import Cron, Every
    from interlock.timers.registry import TimerRegistry
    from interlock.timers.timer import Body

F = TypeVar("F", bound="Body")


class TimingApp:
    """Timers: functions that fire on every server, with at most N running in the whole fleet."""

    timers: TimerRegistry

    def timer(
        self, schedule: Every | Cron, *, name: str | None = None, **options: Unpack[TimerKeywords]
    ) -> Callable[[F], F]:
        """Fire the function by this schedule on every server with the role `timers`; calling it stays a plain call."""
        refuse_unknown(options, TimerKeywords)
        check_schedule(schedule)  # `@app.timer` without a schedule must not swallow the function

        def declare(function: F) -> F:
            self.add_timer(name, function, schedule, **options)
            return function

        return declare

    def add_timer(
        self, name: str | None, function: Body, schedule: Every | Cron, **options: Unpack[TimerKeywords]
    ) -> None:
        """The same as a call, for functions that are made elsewhere."""
        refuse_unknown(options, TimerKeywords)
        self.timers.add(declared_timer(function, schedule, name=name, **options))
