"""The trace of the caller goes with its work, where OpenTelemetry is in use."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tests.integration.dispatch.shop import Shop

PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def telemetry(*, valid: bool):
    span = SimpleNamespace(
        trace_id=0x0AF7651916CD43DD8448EB211C80319C, span_id=0x00F067AA0BA902B7, trace_flags=1, is_valid=valid
    )
    return SimpleNamespace(get_current_span=lambda: SimpleNamespace(get_span_context=lambda: span))


@pytest.fixture
async def shop(migrated):
    shop = Shop(migrated)
    async with shop.app:
        yield shop


async def trace_of(conn, handle) -> str | None:
    return await conn.fetchval("SELECT trace FROM interlock.work_queue WHERE id = $1", handle.id)


async def test_an_entry_names_the_span_of_its_caller(shop, conn, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", telemetry(valid=True))
    assert await trace_of(conn, await shop.greet.aenqueue("Ada")) == PARENT
    handles = await shop.app.aenqueue_many([shop.greet.bind("Ada"), shop.double.bind(1)])
    assert [await trace_of(conn, handle) for handle in handles] == [PARENT] * 2


async def test_the_execution_carries_it_along(shop, conn, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", telemetry(valid=True))
    handle = await shop.greet.aenqueue("Ada")
    async with shop.app.running(["worker"]):
        await handle.aresult(timeout=60)
    assert await conn.fetchval("SELECT trace FROM interlock.execution") == PARENT


async def test_no_span_and_no_telemetry_leave_it_empty(shop, conn, monkeypatch):
    assert await trace_of(conn, await shop.greet.aenqueue("Ada")) is None
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", telemetry(valid=False))
    assert await trace_of(conn, await shop.greet.aenqueue("Ada")) is None
