"""Who acts on running work, what they may do, and what they changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from interlock.errors import InvalidOption, NotPermitted
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

    def __post_init__(self) -> None:
        """A role's name is not its permissions: as a text it would permit whatever it happens to contain."""
        checked_remark("actor", self.name)
        if not _are_permissions(self.permissions):
            expected = "a set of permissions, such as ROLES['operator']"
            raise InvalidOption(option="permissions", found=self.permissions, expected=expected)
        if self.via not in get_args(Via):
            raise InvalidOption(option="via", found=self.via, expected="one of " + ", ".join(get_args(Via)))

    def require(self, permission: Permission) -> None:
        """Refuse what this actor may not do."""
        if permission not in self.permissions:
            raise NotPermitted(actor=self.name, permission=permission.value)


def _are_permissions(found: object) -> bool:
    return isinstance(found, frozenset | set) and found <= ADMIN


CODE = Actor("code")
"""Whoever calls the app from code and does not say who they are."""


def actor_named(said: Actor | str | None) -> Actor:
    """An actor as code names it: a name alone may do everything, as the code that says it could."""
    if isinstance(said, Actor):
        return said
    return CODE if said is None else Actor(said)


class Change(NamedTuple):
    """One thing that a command changed, as the audit keeps it."""

    action: str
    target_kind: str
    target: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
