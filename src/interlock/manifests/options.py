"""What a declaration may say about a manifest besides its train and its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from interlock.errors import InvalidOption, InvalidSchedule
from interlock.model.exclusion import DateRange, Dates, Weekdays, Window
from interlock.model.plan import Misfire
from interlock.trains.names import name_of
from interlock.trains.options import (
    Backoff,
    checked_count,
    checked_duration,
    checked_factor,
    checked_flag,
    checked_priority,
    checked_timeout,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

    from interlock.manifests.settings import ManifestSettings
    from interlock.model.exclusion import Exclusion
    from interlock.trains.names import Named
    from interlock.trains.options import TrainOptions


class ManifestKeywords(TypedDict, total=False):
    """The keywords of `app.schedule`, `then` and their relatives; what is left out is the train's or the settings'."""

    group: str | Named | None
    tz: str | None
    variance: timedelta
    exclude: Collection[Exclusion]
    misfire: Literal["fire_once", "skip"] | None
    misfire_threshold: timedelta | None
    max_attempts: int | None
    retry: Backoff | None
    retry_delay: timedelta | None
    retry_backoff: float | None
    max_retry_delay: timedelta | None
    timeout: timedelta | None
    priority: int | None
    enabled: bool


def checked_policy(keywords: ManifestKeywords, train: TrainOptions, settings: ManifestSettings) -> dict[str, Any]:
    """Group, priority, attempts, delays and timeout: the manifest's own word, else its train's.

    The train's word is written into the manifest, because the server that queues it may not know the train.
    """
    group = keywords.get("group")
    return {
        "group": name_of("group", group) if group is not None else train.group or "default",
        "priority": _first(checked_priority(keywords.get("priority")), train.priority),
        "max_attempts": _first(checked_count("max_attempts", keywords.get("max_attempts")), train.max_attempts),
        "timeout": _first(checked_timeout(keywords.get("timeout")), train.timeout),
        "enabled": checked_flag("enabled", keywords.get("enabled", True)),
        **_delays(keywords, train, settings),
    }


def _first(own: Any, inherited: Any) -> Any:
    return inherited if own is None else own


def _delays(keywords: ManifestKeywords, train: TrainOptions, settings: ManifestSettings) -> dict[str, Any]:
    names = ("retry_delay", "retry_backoff", "max_retry_delay")
    single: dict[str, Any] = {name: keywords.get(name) for name in names}
    retry = keywords.get("retry")
    if retry is not None and not isinstance(retry, Backoff):
        raise InvalidOption(option="retry", found=retry, expected="Backoff(delay, factor, max_delay)")
    _check_delays(single)
    stated = {name: value for name, value in single.items() if value is not None}
    if retry is not None and stated:
        raise InvalidOption(option="retry", found=retry, expected=f"not together with {', '.join(stated)}")
    chosen = train.retry if retry is None else retry
    inherited = single if chosen is None else dict(zip(names, _parts(chosen), strict=True))
    delays = inherited | stated
    longest = settings.max_retry_delay if delays["max_retry_delay"] is None else delays["max_retry_delay"]
    if "retry_delay" in stated and stated["retry_delay"] > longest:
        expected = f"at most max_retry_delay, which is {longest}; raise that as well"
        raise InvalidOption(option="retry_delay", found=stated["retry_delay"], expected=expected)
    return delays


def _parts(backoff: Backoff) -> tuple[timedelta, float, timedelta]:
    return backoff.delay, float(backoff.factor), backoff.max_delay


def _check_delays(single: dict[str, Any]) -> None:
    if single["retry_backoff"] is not None:
        checked_factor(single["retry_backoff"])
        single["retry_backoff"] = float(single["retry_backoff"])
    for name in ("retry_delay", "max_retry_delay"):
        if single[name] is not None:
            checked_duration(name, single[name])


def checked_misfire(keywords: ManifestKeywords, settings: ManifestSettings) -> tuple[Misfire, timedelta]:
    found, threshold = keywords.get("misfire"), keywords.get("misfire_threshold")
    try:
        misfire = Misfire(settings.misfire if found is None else found)
    except ValueError:
        raise InvalidOption(option="misfire", found=found, expected="'fire_once' or 'skip'") from None
    return misfire, settings.misfire_threshold if threshold is None else threshold


def checked_exclusions(found: object) -> tuple[Exclusion, ...]:
    if isinstance(found, Weekdays | Dates | DateRange | Window):
        return (found,)
    if not isinstance(found, list | tuple | set | frozenset):
        raise InvalidOption(option="exclude", found=found, expected="a list such as [exclude.weekdays('sat', 'sun')]")
    for exclusion in found:
        if not isinstance(exclusion, Weekdays | Dates | DateRange | Window):
            hint = "write exclude.weekdays, exclude.dates, exclude.date_range or exclude.window"
            raise InvalidSchedule(found=exclusion, problem="is not an exclusion", hint=hint)
    # A set comes in another order in each process, and would look like an edit at each start.
    return tuple(sorted(found, key=repr)) if isinstance(found, set | frozenset) else tuple(found)
