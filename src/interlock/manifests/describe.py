"""From the arguments of a declaring call to a checked declaration: every mistake is named at the call."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from interlock.errors import InvalidOption, InvalidSchedule, PayloadTooLarge
from interlock.manifests.options import ManifestKeywords, checked_exclusions, checked_misfire, checked_policy
from interlock.model.manifest import ManifestDeclaration
from interlock.model.plan import check_schedule
from interlock.model.schedule import MAXIMUM_DURATION, Cron, Dependent, Dormant, Every, Manual, Once, in_zone, time_zone
from interlock.trains.bound import Bound
from interlock.trains.names import checked_name
from interlock.trains.options import refuse_unknown

if TYPE_CHECKING:
    from interlock.manifests.settings import ManifestSettings
    from interlock.model.schedule import Schedule
    from interlock.trains.registry import Registry


class Describer:
    """Makes declarations of the trains of one app."""

    def __init__(self, trains: Registry, settings: ManifestSettings, max_input_bytes: int) -> None:
        self._trains, self._settings, self._max_input_bytes = trains, settings, max_input_bytes

    def describe(
        self, external_id: str, bound: Bound[Any], schedule: Schedule, options: ManifestKeywords
    ) -> ManifestDeclaration:
        refuse_unknown(options, ManifestKeywords)
        checked_name("external_id", external_id)
        self._check_bound(external_id, bound)
        schedule = in_zone(schedule, options.get("tz"))
        misfire, threshold = checked_misfire(options, self._settings)
        declaration = ManifestDeclaration(
            external_id=external_id,
            train=bound.train,
            input=bound.input,
            schedule=schedule,
            time_zone=time_zone(schedule, options.get("tz")),
            exclusions=checked_exclusions(options.get("exclude", ())),
            misfire=misfire,
            misfire_threshold=threshold,
            variance=options.get("variance", timedelta(0)),
            **checked_policy(options, bound.declaration.options, self._settings),
        )
        _check(declaration)
        return declaration

    def _check_bound(self, external_id: str, bound: object) -> None:
        if not isinstance(bound, Bound):
            raise InvalidOption(option="bound", found=bound, expected="a train with its input: train.bind(…)")
        self._trains.refuse_foreign(bound.declaration)
        if len(bound.input) > self._max_input_bytes:
            what = f"the input of manifest {external_id!r}"
            raise PayloadTooLarge(what=what, size=len(bound.input), limit=self._max_input_bytes)


def checked_when(when: object) -> Schedule:
    """The schedule of a manifest that waits for no other."""
    match when:
        case None:
            return Manual()
        case Every() | Cron() | Once() | Manual():
            return when
        case Dependent() | Dormant():
            hint = "declare it with the parent's then(…)"
            raise InvalidSchedule(found=when, problem="names a parent", hint=hint)
        case _:
            hint = "write every(…), cron(…), once(…), or None for a manifest that is only triggered"
            raise InvalidSchedule(found=when, problem="is not a schedule", hint=hint)


def _check(declaration: ManifestDeclaration) -> None:
    for option in ("variance", "misfire_threshold", "retry_delay", "max_retry_delay", "timeout"):
        found = getattr(declaration, option)
        if isinstance(found, timedelta) and found > MAXIMUM_DURATION:
            raise InvalidOption(option=option, found=found, expected="at most 100 years")
    check_schedule(
        declaration.schedule,
        exclusions=declaration.exclusions,
        variance=declaration.variance,
        misfire_threshold=declaration.misfire_threshold,
        tz=declaration.time_zone,
    )
