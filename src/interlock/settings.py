"""Every option of Interlock: `[tool.interlock]` < environment < arguments, validated once.

The options are declared beside the component that reads them, as frozen dataclasses; this module only gathers them.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from interlock.dispatch.settings import DispatchSettings
from interlock.errors import ContradictingSettings, InvalidSetting, UnknownSetting
from interlock.locks.settings import LockSettings
from interlock.manifests.settings import ManifestSettings
from interlock.model.setting_values import check_range, parse, spoken
from interlock.outbox.settings import OutboxSettings
from interlock.runtime.settings import RuntimeSettings
from interlock.store.settings import StoreSettings
from interlock.store.sql import check_schema_name
from interlock.timers.settings import TimerSettings
from interlock.upkeep.settings import UpkeepSettings
from interlock.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DEFAULT = "default"
POLLING_INTERVAL = "polling_interval"
PROJECT_TABLE = "[tool.interlock]"
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
            yield name, getattr(getattr(self, section), name), self.origins.get(name, DEFAULT)


def sections() -> Mapping[str, type[Any]]:
    """The components by the name of their section."""
    return _SECTIONS


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
    return _merge(_sources(arguments or {}, os.environ if environment is None else environment, folder))


def override(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """The settings with what a command line says, which wins over every other source."""
    kept = ((origin, {name: value}) for name, value, origin in settings.options() if origin != DEFAULT)
    said = ((f"--{name.replace('_', '-')}", {name: value}) for name, value in flags.items())
    return _merge(chain(kept, said))


def project_table(folder: Path) -> Mapping[str, Any]:
    """`[tool.interlock]` of the folder's pyproject.toml."""
    file = folder / "pyproject.toml"
    if not file.is_file():
        return {}
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("interlock", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InvalidSetting(
            setting=PROJECT_TABLE, found=str(error), expected="a TOML file that can be read", origin=str(file)
        ) from error
    except AttributeError:
        table = None  # `tool` itself is no table
    if not isinstance(table, dict):
        raise InvalidSetting(setting=PROJECT_TABLE, found=table, expected="a table of options", origin=str(file))
    return table


def variable(option: str) -> str:
    """The environment variable of an option."""
    return f"INTERLOCK_{option.upper()}"


def misspelt_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Variables that look like an option and are none, each with the one that was probably meant.

    They are no error: other programs may own the prefix (Kubernetes sets INTERLOCK_PORT for a service of our name).
    """
    known = [variable(option) for option in (*known_options(), *_SHORTHANDS)]
    for name in sorted(environment):
        if name.startswith("INTERLOCK_") and name not in known:
            yield from ((name, meant) for meant in get_close_matches(name, known, n=1, cutoff=0.9))


def _merge(sources: Iterable[tuple[str, Mapping[str, Any]]]) -> Settings:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, found in sources:
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
    """From the weakest to the strongest; inside one source the shorthand is weaker than what it stands for."""
    table = project_table(folder or Path.cwd())
    yield f"pyproject.toml {PROJECT_TABLE}", _shorthands_first({k: v for k, v in table.items() if k != "app"})
    if environment.get("DATABASE_URL"):
        yield "DATABASE_URL", {"dsn": environment["DATABASE_URL"]}
    for name in (*_SHORTHANDS, *known_options()):
        if environment.get(variable(name)):
            yield variable(name), {name: environment[variable(name)]}
    yield "argument", _shorthands_first({k: v for k, v in arguments.items() if v is not None or k != "dsn"})


def _shorthands_first(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: values[name] for name in sorted(values, key=lambda name: name not in _SHORTHANDS)}


def _checked(name: str, value: Any, origin: str) -> Any:
    if name not in known_options():
        raise UnknownSetting(setting=name, origin=origin, nearest=_nearest(name))
    if name == "schema":
        return check_schema_name(value)
    parsed = parse(name, value, known_options()[name][1], origin)
    check_range(name, parsed, origin)
    return parsed


def _nearest(name: str) -> str | None:
    close = get_close_matches(name, [*known_options(), *_SHORTHANDS], n=1)
    return close[0] if close else None


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
    if settings.locks.lock_backend == "memory" and settings.outbox.outbox_mode != "claim":
        _contradiction(
            settings, "outbox_mode", "lock_backend", "workers of other processes do not see who holds which lane"
        )
    if settings.locks.lock_backend == "redis" and settings.locks.redis_url is None:
        _contradiction(settings, "lock_backend", "redis_url", "the Redis lock backend needs the URL of its server")


def _contradiction(settings: Settings, first: str, second: str, rule: str) -> None:
    shown = {name: spoken(value) for name, value, _ in settings.options()}
    raise ContradictingSettings(
        first=first, first_value=shown[first], second=second, second_value=shown[second], rule=rule
    )
