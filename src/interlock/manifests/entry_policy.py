"""What travels with an entry: the manifest's own word, else the train's, else that of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from interlock.model.due import EntryPolicy
from interlock.trains.options import HIGHEST_PRIORITY, TrainOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.manifests.settings import ManifestSettings
    from interlock.model.due import DueManifest

V = TypeVar("V")


class EntryPolicies:
    """The manager may run on a server that does not know the train; then the settings speak for it."""

    def __init__(self, settings: ManifestSettings, options_of: Callable[[str], TrainOptions | None]) -> None:
        self._settings, self._options_of = settings, options_of

    def max_attempts(self, manifest: DueManifest) -> int | None:
        """As the manifest or its train says; None where it is left to the settings."""
        return _first(manifest.max_attempts, self._options(manifest).max_attempts, None)

    def resolve(self, manifest: DueManifest) -> EntryPolicy:
        settings, options = self._settings, self._options(manifest)
        retry = options.retry
        return EntryPolicy(
            priority=self._priority(manifest, options),
            max_attempts=_first(manifest.max_attempts, options.max_attempts, settings.max_attempts),
            retry_delay=_first(manifest.retry_delay, retry.delay if retry else None, settings.retry_delay),
            max_retry_delay=_first(
                manifest.max_retry_delay, retry.max_delay if retry else None, settings.max_retry_delay
            ),
            retry_backoff=_first(manifest.retry_backoff, retry.factor if retry else None, settings.retry_backoff),
            timeout=_first(manifest.timeout, options.timeout, settings.default_job_timeout),
        )

    def _priority(self, manifest: DueManifest, options: TrainOptions) -> int:
        boost = self._settings.dependent_priority_boost if manifest.schedule_kind == "dependent" else 0
        of_group = max(0, min(manifest.group_priority + boost, HIGHEST_PRIORITY))
        return _first(manifest.priority, options.priority, of_group)

    def _options(self, manifest: DueManifest) -> TrainOptions:
        return self._options_of(manifest.train) or TrainOptions()


def _first(manifest: V | None, train: V | None, settings: V) -> V:
    if manifest is not None:
        return manifest
    return settings if train is None else train
