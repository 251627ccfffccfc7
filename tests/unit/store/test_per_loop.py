"""Connections by event loop."""

from __future__ import annotations

import asyncio
import gc
import weakref

from interlock.store.per_loop import PerLoop


class Connection:
    """Whatever is open."""


async def nothing(_: Connection) -> None:
    """Nothing is open."""


def test_what_belongs_to_an_event_loop_that_is_over_is_let_go_of():
    seen: list[weakref.ref[Connection]] = []
    connections: PerLoop[Connection] = PerLoop(Connection, nothing)

    async def use() -> None:
        seen.append(weakref.ref(connections.get()))

    for _ in range(3):
        asyncio.run(use())
    gc.collect()
    assert [each() is None for each in seen] == [True, True, False]
