"""What this process says of itself when it registers as a server."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from interlock.errors import InvalidOption
from interlock.model.server import Role, ServerProfile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from interlock.runtime.settings import RuntimeSettings


def checked_roles(roles: Iterable[str] | None) -> frozenset[Role]:
    """The roles that a server is to have; all of them when nobody chose. A runner is not started by its role."""
    known = [role for role in Role if role is not Role.RUNNER]
    if roles is None:
        return frozenset(known)
    names = [roles] if isinstance(roles, str) else list(roles)
    for name in names:
        if name not in known:
            raise InvalidOption(option="roles", found=name, expected="some of " + ", ".join(known))
    return frozenset(map(Role, names))


def describe_server(
    settings: RuntimeSettings,
    *,
    roles: Iterable[str] = (),
    trains: Iterable[str] = (),
    tags: Iterable[str] = (),
    slots: int = 0,
) -> ServerProfile:
    """The name is stable between restarts (by default the host's), the id is drawn when it registers."""
    from importlib import metadata  # noqa: PLC0415  a tenth of the import of an app, and only servers need it

    host = socket.gethostname()
    return ServerProfile(
        name=settings.server_name or host,
        host=host,
        pid=os.getpid(),
        version=metadata.version("interlock"),
        app=settings.name,
        roles=tuple(sorted(roles)),
        trains=tuple(sorted(trains)),
        tags=tuple(sorted(tags)),
        slots=slots,
    )
