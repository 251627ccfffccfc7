"""Who acts on running work, what they may do, and what they changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from interlock.errors import NotPermitted
from interlock.model.bounds import checked_remark

if TYPE_CHECKING:
    from collections.abc import Mapping

Via = Literal["cli", "web", "api", "code"]


class Permission(StrEnum):
    """What an actor may do; every command names the one it needs."""

    VIEW = "view"
    ENQUEUE = "enqueue"
    TRIGGER = "trigger"
    SWITCH = "switch"
    PAUSE = "pause"
    CANCEL = "cancel"
    RERUN = "rerun"
    RESOLVE = "resolve"
    CONFIGURE = "configure"
    PRUNE = "prune"


VIEWER = frozenset({Permission.VIEW})
ADMIN = frozenset(Permission)
OPERATOR = ADMIN - {Permission.CONFIGURE, Permission.PRUNE}
ROLES: Mapping[str, frozenset[Permission]] = {"viewer": VIEWER, "operator": OPERATOR, "admin": ADMIN}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, what they may do, and through which door they came."""

    name: str
    permissions: frozenset[Permission] = ADMIN
    via: Via = "code"

    def require(self, permission: Permission) -> None:
        """Refuse what this actor may not do."""
        if permission not in self.permissions:
            raise NotPermitted(actor=self.name, permission=permission.value)


CODE = Actor("code")
"""Whoever calls the app from code and does not say who they are."""


def actor_named(said: Actor | str | None) -> Actor:
    """An actor as code names it: a name alone may do everything, as the code that says it could."""
    if isinstance(said, Actor):
        return said
    return CODE if said is None else Actor(checked_remark("actor", said))


class Change(NamedTuple):
    """One thing that a command changed, as the audit keeps it."""

    action: str
    target_kind: str
    target: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
