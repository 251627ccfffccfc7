"""A kept connection is closed by whoever opened it, also where its opening is cut short."""

from __future__ import annotations

import asyncio

import pytest

from interlock.store.line import Line


@pytest.fixture
def door(migrated, opened):
    return opened(migrated)


def never_answering(door, monkeypatch) -> tuple[list, asyncio.Event]:
    """What a line opens from now on; its settings are never answered."""
    connections, asked = [], asyncio.Event()

    async def never_answered(conn) -> None:
        connections.append(conn)
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(door, "plan_by_key", never_answered)
    return connections, asked


async def use(line: Line) -> None:
    async with line.connection():
        pass


async def use_in_transaction(line: Line, query: str) -> None:
    async with line.transaction() as conn:
        await conn.execute(query)


async def test_a_line_that_is_cancelled_while_it_opens_leaves_no_connection(door, monkeypatch):
    connections, asked = never_answering(door, monkeypatch)
    line = Line(door, "test", by_key=True)
    opening = asyncio.create_task(use(line))
    await asked.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await line.close()
    assert [conn.is_closed() for conn in connections] == [True]


async def test_a_line_whose_settings_are_refused_leaves_no_connection(door, monkeypatch):
    connections = []

    async def refused(conn) -> None:
        connections.append(conn)
        raise OSError("cut")

    monkeypatch.setattr(door, "plan_by_key", refused)
    with pytest.raises(OSError, match="cut"):
        await use(Line(door, "test", by_key=True))
    assert [conn.is_closed() for conn in connections] == [True]


async def test_what_follows_a_transaction_that_was_cancelled_as_it_began_is_committed(door):
    line = Line(door, "test", by_key=True)
    await use(line)
    beginning = asyncio.create_task(use_in_transaction(line, "SELECT 1"))
    await asyncio.sleep(0)  # it has asked for its BEGIN, and waits for the answer
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    await use_in_transaction(line, "CREATE TABLE kept ()")
    await line.close()
    async with door.connection() as conn:
        assert await conn.fetchval("SELECT to_regclass('kept') IS NOT NULL")


async def test_a_line_is_opened_once_and_anew_after_it_broke(door):
    line = Line(door, "test", by_key=True)
    async with line.connection() as first:
        pass
    async with line.connection() as again:
        assert again is first
    first.terminate()
    async with line.connection() as other:
        assert await other.fetchval("SELECT 1") == 1
    await line.close()
    assert other.is_closed()
