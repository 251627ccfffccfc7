"""Who may do what: every command names its permission, and an actor without it changes nothing."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta

import pytest

from interlock.errors import NotPermitted
from interlock.model.act import ADMIN, CODE, OPERATOR, ROLES, VIEWER, Actor, Permission, actor_named
from interlock.model.dead_letter import DeadLetterFilter
from interlock.operate.commands import Commands
from interlock.runtime.clock import FakeClock

CALLS = {
    "trigger": (Permission.TRIGGER, ["m"]),
    "enable": (Permission.SWITCH, ["m"]),
    "disable": (Permission.SWITCH, ["m"]),
    "pause": (Permission.PAUSE, []),
    "resume": (Permission.PAUSE, []),
    "cancel_manifest": (Permission.CANCEL, ["m"]),
    "cancel_group": (Permission.CANCEL, ["g"]),
    "cancel_execution": (Permission.CANCEL, [1]),
    "cancel_entry": (Permission.CANCEL, [1]),
    "set_group": (Permission.CONFIGURE, ["g"]),
    "requeue": (Permission.RESOLVE, [1]),
    "acknowledge": (Permission.RESOLVE, [1]),
    "requeue_many": (Permission.RESOLVE, [DeadLetterFilter()]),
    "acknowledge_many": (Permission.RESOLVE, [DeadLetterFilter()]),
    "rerun": (Permission.RERUN, [1]),
    "enqueue": (Permission.ENQUEUE, ["t", {}]),
    "prune": (Permission.PRUNE, []),
}


class NoDatabase:
    """Means that would tell if a command reached for the database."""

    app, declarations = "shop", type("None_", (), {"manifests": {}})
    clock = FakeClock(datetime(2030, 1, 1, tzinfo=UTC))

    async def database(self) -> None:
        raise AssertionError("asked for the database without permission")


def test_every_command_is_listed_here():
    public = {
        name
        for name, member in inspect.getmembers(Commands, inspect.iscoroutinefunction)
        if not name.startswith("_") and name != "adatabase"
    }
    assert public == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
async def test_a_command_asks_for_its_permission_before_anything_else(name):
    permission, arguments = CALLS[name]
    actor = Actor("eve", ADMIN - {permission}, "web")
    with pytest.raises(NotPermitted, match=f"eve lacks the permission '{permission}'"):
        await getattr(Commands(NoDatabase(), actor=actor), name)(*arguments)


@pytest.mark.parametrize("name", CALLS)
async def test_control_with_its_permission_alone_it_goes_on_to_the_database(name):
    permission, arguments = CALLS[name]
    actor = Actor("eve", frozenset({permission}), "web")
    with pytest.raises(AssertionError, match="without permission"):
        await getattr(Commands(NoDatabase(), actor=actor), name)(*arguments)


def test_the_roles_contain_each_other():
    assert VIEWER < OPERATOR < ADMIN == frozenset(Permission)
    assert list(ROLES) == ["viewer", "operator", "admin"]
    assert OPERATOR.isdisjoint({Permission.CONFIGURE, Permission.PRUNE})


def test_code_that_does_not_say_who_it_is_may_do_all():
    assert actor_named(None) is CODE
    assert actor_named("ada") == Actor("ada", ADMIN, "code")
    assert actor_named(Actor("eve", VIEWER, "api")).permissions == VIEWER


async def test_a_negative_delay_is_refused_before_the_database_is_asked():
    with pytest.raises(ValueError, match="delay"):
        await Commands(NoDatabase()).trigger("m", delay=timedelta(seconds=-1))
