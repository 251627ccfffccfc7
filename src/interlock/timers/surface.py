"""What an app offers for declaring timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from interlock.timers.timer import DEFAULT_RUN_TIME, check_schedule, declared_timer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from interlock.model.exclusion import Exclusion
    from interlock.model.schedule import Cron, Every
    from interlock.timers.registry import TimerRegistry
    from interlock.timers.timer import Body, Overrun, WhenLockDown

F = TypeVar("F", bound="Body")


class TimingApp:
    """Timers: functions that fire on every server, with at most N running in the whole fleet."""

    timers: TimerRegistry

    def timer(
        self,
        schedule: Every | Cron,
        *,
        name: str | None = None,
        max_concurrency: int = 1,
        runs_per_tick: int | None = None,
        max_run_time: timedelta = DEFAULT_RUN_TIME,
        retry_on_error: bool = False,
        spread_start: bool = True,
        exclude: Sequence[Exclusion] = (),
        tz: str | None = None,
        distributed: bool | None = None,
        when_lock_down: WhenLockDown = "skip",
        local_cap: int | None = None,
        overrun: Overrun = "cancel",
    ) -> Callable[[F], F]:
        """Fire the function by this schedule on every server with the role `timers`; calling it stays a plain call."""
        check_schedule(schedule)  # `@app.timer` without a schedule must not swallow the function

        def declare(function: F) -> F:
            self.add_timer(
                name,
                function,
                schedule,
                max_concurrency=max_concurrency,
                runs_per_tick=runs_per_tick,
                max_run_time=max_run_time,
                retry_on_error=retry_on_error,
                spread_start=spread_start,
                exclude=exclude,
                tz=tz,
                distributed=distributed,
                when_lock_down=when_lock_down,
                local_cap=local_cap,
                overrun=overrun,
            )
            return function

        return declare

    def add_timer(
        self,
        name: str | None,
        function: Body,
        schedule: Every | Cron,
        *,
        max_concurrency: int = 1,
        runs_per_tick: int | None = None,
        max_run_time: timedelta = DEFAULT_RUN_TIME,
        retry_on_error: bool = False,
        spread_start: bool = True,
        exclude: Sequence[Exclusion] = (),
        tz: str | None = None,
        distributed: bool | None = None,
        when_lock_down: WhenLockDown = "skip",
        local_cap: int | None = None,
        overrun: Overrun = "cancel",
    ) -> None:
        """The same as a call, for functions that are made elsewhere."""
        self.timers.add(
            declared_timer(
                function,
                schedule,
                name=name,
                max_concurrency=max_concurrency,
                runs_per_tick=runs_per_tick,
                max_run_time=max_run_time,
                retry_on_error=retry_on_error,
                spread_start=spread_start,
                exclude=exclude,
                tz=tz,
                distributed=distributed,
                when_lock_down=when_lock_down,
                local_cap=local_cap,
                overrun=overrun,
            )
        )
