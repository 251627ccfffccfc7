"""What a declaration may say about a train besides its function."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict

from interlock.errors import InvalidOption
from interlock.model.bounds import LARGEST_COUNT, LONGEST
from interlock.trains.finished import checked_hook
from interlock.trains.names import checked_names, name_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from interlock.trains.finished import Hook
    from interlock.trains.names import Named

HIGHEST_PRIORITY = 63
_NO_TIME = timedelta()


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before another attempt: each wait is `factor` times the one before, up to `max_delay`."""

    delay: timedelta
    factor: float = 2.0
    max_delay: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        checked_duration("retry.delay", self.delay)
        checked_duration("retry.max_delay", self.max_delay)
        checked_factor(self.factor)
        if self.max_delay < self.delay:
            raise InvalidOption(option="retry.max_delay", found=self.max_delay, expected="at least retry.delay")

    def after(self, failures: int) -> timedelta:
        """The wait that follows the given number of failures."""
        try:
            return min(self.delay * self.factor ** (failures - 1), self.max_delay)
        except OverflowError:
            return self.max_delay


class ChainKeywords(TypedDict, total=False):
    """The keywords of `app.chain`."""

    aliases: Collection[str]
    group: str | Named | None
    max_attempts: int | None
    timeout: timedelta | None
    priority: int | None
    concurrency: int | None
    tags: Collection[str]
    retry: Backoff | None
    retention: timedelta | None
    on_success: Hook | None
    on_failure: Hook | None


class TrainKeywords(ChainKeywords, total=False):
    """The keywords of `@app.train`."""

    name: str
    process: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """The checked options of one train; None leaves the choice to the settings of the app."""

    aliases: tuple[str, ...] = ()
    group: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    priority: int | None = None
    process: bool = False
    concurrency: int | None = None
    tags: frozenset[str] = frozenset()
    retry: Backoff | None = None
    retention: timedelta | None = None
    on_success: Hook | None = None
    on_failure: Hook | None = None


def refuse_unknown(keywords: Mapping[str, object], known: type) -> None:
    """A misspelt option must not be a silent default."""
    for name, found in keywords.items():
        if name not in known.__annotations__:
            expected = f"one of the options {', '.join(known.__annotations__)}{_meant(name, known.__annotations__)}"
            raise InvalidOption(option=name, found=found, expected=expected)


def _meant(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it

    return "".join(f"; did you mean {close}?" for close in get_close_matches(name, known, n=1))


def checked_options(keywords: TrainKeywords) -> TrainOptions:
    """The options as declared, each checked on its own."""
    group, retry = keywords.get("group"), keywords.get("retry")
    if retry is not None and not isinstance(retry, Backoff):
        raise InvalidOption(option="retry", found=retry, expected="Backoff(delay, factor, max_delay)")
    return TrainOptions(
        aliases=checked_names("aliases", keywords.get("aliases", ())),
        group=None if group is None else name_of("group", group),
        max_attempts=checked_count("max_attempts", keywords.get("max_attempts")),
        timeout=checked_timeout(keywords.get("timeout")),
        priority=checked_priority(keywords.get("priority")),
        process=checked_flag("process", keywords.get("process", False)),
        concurrency=checked_count("concurrency", keywords.get("concurrency")),
        tags=frozenset(checked_names("tags", keywords.get("tags", ()))),
        retry=retry,
        retention=checked_retention(keywords.get("retention")),
        on_success=_checked_hook("on_success", keywords.get("on_success")),
        on_failure=_checked_hook("on_failure", keywords.get("on_failure")),
    )


def checked_duration(option: str, found: object, *, zero: bool = False) -> timedelta:
    if not isinstance(found, timedelta) or found < _NO_TIME or (found == _NO_TIME and not zero):
        sign = "that is not negative" if zero else "above zero"
        raise InvalidOption(option=option, found=found, expected=f"a timedelta {sign}, such as timedelta(minutes=5)")
    if found > LONGEST:
        raise InvalidOption(option=option, found=found, expected=f"a timedelta of at most {LONGEST.days:,} days")
    return found


def checked_seconds(option: str, found: object) -> float | None:
    """How long somebody is ready to wait, in seconds; None for as long as it takes."""
    if found is None:
        return None
    seconds = found.total_seconds() if isinstance(found, timedelta) else found
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        expected = "seconds from 0 on as a number or a timedelta, or None to wait for as long as it takes"
        raise InvalidOption(option=option, found=found, expected=expected)
    return None if seconds > LONGEST.total_seconds() else float(seconds)


def checked_factor(found: object) -> None:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 1 <= found <= LARGEST_COUNT:
        raise InvalidOption(option="retry.factor", found=found, expected=f"a number from 1 to {LARGEST_COUNT:,}")


def checked_timeout(found: object) -> timedelta | None:
    return None if found is None else checked_duration("timeout", found)


def checked_retention(found: object) -> timedelta | None:
    return None if found is None else checked_duration("retention", found)


def checked_count(option: str, found: object) -> int | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= LARGEST_COUNT:
        raise InvalidOption(option=option, found=found, expected=f"a whole number from 1 to {LARGEST_COUNT:,}")
    return found


def checked_priority(found: object) -> int | None:
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= HIGHEST_PRIORITY:
        raise InvalidOption(option="priority", found=found, expected=f"a whole number from 0 to {HIGHEST_PRIORITY}")
    return found


def checked_flag(option: str, found: object) -> bool:
    if not isinstance(found, bool):
        raise InvalidOption(option=option, found=found, expected="True or False")
    return found


def _checked_hook(option: str, found: object) -> Hook | None:
    return None if found is None else checked_hook(option, found)
