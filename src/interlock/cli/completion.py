"""Names and ids for the shell: what the database answers within a moment, and nothing when it does not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from interlock.cli.choose import choose_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    import click

    from interlock.app import Interlock

    Names = Callable[[Interlock, str], Awaitable[Iterable[object]]]
    Completer = Callable[[click.Context, click.Parameter, str], list[str]]

A_MOMENT = 2.0
MOST = 50


def completing(names: Names) -> Completer:
    """A completer from a way to read names; an embedded server is not started for it."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  click's signature
        try:
            found = asyncio.run(_ask(ctx.obj or {}, names, incomplete))
        except Exception:  # noqa: BLE001  a shell that completes must not be disturbed
            return []
        return [name for name in map(str, found) if name.startswith(incomplete)]

    return complete


async def _ask(options: dict[str, Any], names: Names, incomplete: str) -> Iterable[object]:
    app = choose_app(options)
    if app.settings.store.dsn is None:
        return []
    async with asyncio.timeout(A_MOMENT), app:
        return await names(app, incomplete)


async def _manifests(app: Interlock, incomplete: str) -> Iterable[object]:
    page = await app.views.manifests(search=incomplete or None, limit=MOST)
    return [line.external_id for line in page.lines]


async def _groups(app: Interlock, _: str) -> Iterable[object]:
    return [group.name for group in await app.views.groups()]


async def _trains(app: Interlock, _: str) -> Iterable[object]:
    return sorted({*await app.views.trains(), *(train.name for train in app.trains)})


async def _executions(app: Interlock, _: str) -> Iterable[object]:
    return [line.id for line in (await app.views.executions(limit=MOST)).lines]


async def _entries(app: Interlock, _: str) -> Iterable[object]:
    return [line.id for line in (await app.views.queue(limit=MOST)).lines]


async def _dead_letters(app: Interlock, _: str) -> Iterable[object]:
    return [line.id for line in (await app.views.dead_letters(limit=MOST)).lines]


manifests = completing(_manifests)
groups = completing(_groups)
trains = completing(_trains)
executions = completing(_executions)
entries = completing(_entries)
dead_letters = completing(_dead_letters)
