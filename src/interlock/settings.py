"""Every option of Interlock: `[tool.interlock]` < environment < arguments, validated once.

The options are declared beside the component that reads them, as frozen dataclasses; this module only gathers them.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from interlock.dispatch.settings import DispatchSettings
from interlock.errors import ContradictingSettings, InvalidSetting
from interlock.locks.settings import LockSettings
from interlock.manifests.settings import ManifestSettings
from interlock.model.setting_values import check_range, parse
from interlock.outbox.settings import OutboxSettings
from interlock.runtime.settings import RuntimeSettings
from interlock.store.settings import StoreSettings
from interlock.store.sql import check_schema_name
from interlock.timers.settings import TimerSettings
from interlock.upkeep.settings import UpkeepSettings
from interlock.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

POLLING_INTERVAL = "polling_interval"
_SECTIONS: dict[str, type[Any]] = {
    "store": StoreSettings,
    "runtime": RuntimeSettings,
    "manifests": ManifestSettings,
    "dispatch": DispatchSettings,
    "worker": WorkerSettings,
    "upkeep": UpkeepSettings,
    "locks": LockSettings,
    "timers": TimerSettings,
    "outbox": OutboxSettings,
}
_SHORTHANDS = {POLLING_INTERVAL: ("manifest_manager_polling_interval", "job_dispatcher_polling_interval")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All options, by the component that reads them, and where each came from."""

    store: StoreSettings = field(default_factory=StoreSettings)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    manifests: ManifestSettings = field(default_factory=ManifestSettings)
    dispatch: DispatchSettings = field(default_factory=DispatchSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    locks: LockSettings = field(default_factory=LockSettings)
    timers: TimerSettings = field(default_factory=TimerSettings)
    outbox: OutboxSettings = field(default_factory=OutboxSettings)
    origins: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> Iterator[tuple[str, Any, str]]:
        """Each option with its value and its origin, by name."""
        for name, (section, _) in sorted(known_options().items()):
            yield name, getattr(getattr(self, section), name), self.origins.get(name, "default")


@cache
def known_options() -> dict[str, tuple[str, Any]]:
    """Each option's section and type."""
    return {
        name: (section, kind)
        for section, component in _SECTIONS.items()
        for name, kind in get_type_hints(component).items()
    }


def load_settings(
    arguments: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Read, merge and validate; a wrong value names itself and its origin, a contradiction names both values."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, found in _sources(arguments or {}, os.environ if environment is None else environment, folder):
        for name, value in found.items():
            for option in _SHORTHANDS.get(name, (name,)):
                values[option] = _checked(option, value, origin)
                origins[option] = f"{origin} ({name})" if option != name else origin
    settings = _build(values, origins)
    _refuse_contradictions(settings)
    return settings


def _sources(
    arguments: Mapping[str, Any], environment: Mapping[str, str], folder: Path | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from _project_file(folder or Path.cwd())
    if environment.get("DATABASE_URL"):
        yield "DATABASE_URL", {"dsn": environment["DATABASE_URL"]}
    for name in (*known_options(), *_SHORTHANDS):
        variable = f"INTERLOCK_{name.upper()}"
        if environment.get(variable):
            yield variable, {name: environment[variable]}
    yield "argument", {name: value for name, value in arguments.items() if value is not None or name != "dsn"}


def _project_file(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    file = folder / "pyproject.toml"
    if not file.is_file():
        return
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("interlock", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting(
            setting="[tool.interlock]", found=str(error), expected="a TOML file that can be read", origin=str(file)
        ) from error
    yield f"{file.name} [tool.interlock]", {name: value for name, value in table.items() if name != "app"}


def _checked(name: str, value: Any, origin: str) -> Any:
    if name not in known_options():
        known = ", ".join(sorted({*known_options(), *_SHORTHANDS}))
        raise InvalidSetting(setting=name, found=value, expected=f"a known option: {known}", origin=origin)
    if name == "schema":
        return check_schema_name(value)
    parsed = parse(name, value, known_options()[name][1], origin)
    check_range(name, parsed, origin)
    return parsed


def _build(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        sections.setdefault(known_options()[name][0], {})[name] = value
    made = {name: _SECTIONS[name](**chosen) for name, chosen in sections.items()}
    return Settings(**made, origins=dict(origins))


def _refuse_contradictions(settings: Settings) -> None:
    runtime, manifests = settings.runtime, settings.manifests
    if runtime.heartbeat > runtime.lease / 3:
        _contradiction(settings, "heartbeat", "lease", "the heartbeat must be at most a third of the lease")
    if manifests.stale_in_progress_timeout <= manifests.default_job_timeout:
        _contradiction(
            settings,
            "stale_in_progress_timeout",
            "default_job_timeout",
            "a job must have the time to end by its timeout before it counts as stale",
        )
    if settings.dispatch.max_concurrent_dispatch >= settings.store.pool_size:
        _contradiction(
            settings,
            "max_concurrent_dispatch",
            "pool_size",
            "every concurrent dispatch takes a connection, and other work needs one too: keep it below the pool size",
        )
    if manifests.max_retry_delay < manifests.retry_delay:
        _contradiction(settings, "max_retry_delay", "retry_delay", "the longest delay must not be below the first")
    if settings.outbox.outbox_emit_timeout >= settings.outbox.outbox_lease:
        _contradiction(
            settings, "outbox_emit_timeout", "outbox_lease", "a message must be delivered before its lease ends"
        )
    if settings.locks.lock_backend == "redis" and settings.locks.redis_url is None:
        _contradiction(settings, "lock_backend", "redis_url", "the Redis lock backend needs the URL of its server")


def _contradiction(settings: Settings, first: str, second: str, rule: str) -> None:
    shown = {name: _spoken(value) for name, value, _ in settings.options()}
    raise ContradictingSettings(
        first=first, first_value=shown[first], second=second, second_value=shown[second], rule=rule
    )


def _spoken(value: object) -> object:
    return f"{value.total_seconds():g}s" if hasattr(value, "total_seconds") else value
