"""The cap, the priority and the switch of a manifest group, as operators set them: they survive deploys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from interlock.errors import InvalidOption, UnknownGroup
from interlock.manifests.declare import HIGHEST_GROUP_PRIORITY
from interlock.model.act import Permission
from interlock.operate.act import Acting
from interlock.store.manifest_group import ManifestGroups
from interlock.store.switch import Switches
from interlock.trains.options import checked_count

if TYPE_CHECKING:
    from interlock.operate.act import Act


class Unset(Enum):
    """Says nothing, where None says "no cap"."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class GroupChange:
    """The settings of a group, and those that the command changed with what they were before."""

    name: str
    settings: dict[str, Any]
    before: dict[str, Any]


class GroupCommands(Acting):
    async def set_group(
        self,
        name: str,
        *,
        max_active_jobs: int | Unset | None = UNSET,
        priority: int | None = None,
        enabled: bool | None = None,
    ) -> GroupChange:
        """Change what is given; a new priority also counts for what is queued already."""
        if not isinstance(max_active_jobs, Unset):
            checked_count("max_active_jobs", max_active_jobs)
        _check_priority(priority)

        async def work(act: Act) -> GroupChange:
            change = await _set(act, name, max_active_jobs, priority, enabled)
            if change.before:
                after = {field: change.settings[field] for field in change.before}
                act.changed("set", "group", name, before=change.before, after=after)
                act.wake("work", "manifest")
            return change

        return await self._act(Permission.CONFIGURE, work)


async def _set(act: Act, name: str, cap: int | Unset | None, priority: int | None, enabled: bool | None) -> GroupChange:  # noqa: FBT001  as in the command
    group_id = (await Switches(act.sql).find(act.conn, group=name)).group_id
    groups = ManifestGroups(act.sql)
    if group_id is None:
        raise UnknownGroup(name=name, known=sorted(await groups.list(act.conn)))
    if priority is not None:
        # Entries are locked before groups, by everybody.
        await groups.copy_priority(act.conn, {group_id: priority})
    unset = isinstance(cap, Unset)
    before, settings = await Switches(act.sql).set_group(
        act.conn,
        name,
        sets_cap=not unset,
        max_active_jobs=None if isinstance(cap, Unset) else cap,
        priority=priority,
        enabled=enabled,
    )
    return GroupChange(name, settings, {field: was for field, was in before.items() if was != settings[field]})


def _check_priority(priority: int | None) -> None:
    if priority is not None and not 0 <= priority <= HIGHEST_GROUP_PRIORITY:
        expected = f"a whole number from 0 to {HIGHEST_GROUP_PRIORITY}"
        raise InvalidOption(option="priority", found=priority, expected=expected)
