from __future__ import annotations

import pytest

from interlock.errors import InvalidOption, NotPermitted
from interlock.model.act import ROLES, Actor, Permission


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ada", "operator"], "permissions='operator'; expected a set of permissions, such as ROLES"),
        (["ada", {"switch", "fly"}], "expected a set of permissions"),
        (["ada", ROLES["viewer"], "backoffice"], "via='backoffice'; expected one of cli, web, api, code"),
        (["a\0b"], "actor="),
        ([7], "actor="),
    ],
)
def test_an_actor_that_no_audit_could_tell_of_is_refused_when_it_is_made(arguments, words):
    with pytest.raises(InvalidOption) as refused:
        Actor(*arguments)
    assert words in str(refused.value)


def test_an_actor_may_do_what_its_role_permits_and_nothing_else():
    ada = Actor("ada", ROLES["operator"], "web")
    ada.require(Permission.SWITCH)
    with pytest.raises(NotPermitted, match="ada lacks the permission 'configure'"):
        ada.require(Permission.CONFIGURE)
