"""Every example of examples/ runs and does what it says."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from interlock.settings import known_options, variable
from interlock.testing import stepper
from tests.harness.processes import ROOT

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLES = ROOT / "examples"
PATIENCE = 90


@pytest.fixture
def example(migrated, monkeypatch):
    """Loads a module of an example, as its own folder sees it, on this test's database."""
    monkeypatch.setenv("INTERLOCK_DSN", migrated)

    def load(path: str) -> ModuleType:
        file = EXAMPLES / path
        monkeypatch.syspath_prepend(str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, file.stem, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


def test_hello(fleet, migrated):
    process = fleet.command(sys.executable, str(EXAMPLES / "hello.py"), env={"INTERLOCK_DSN": migrated})
    assert process.wait_blocking(PATIENCE) == 0, process.output("stderr")
    assert "hello Ada! hello Ada!" in process.output("stdout")


async def test_the_nightly_load_runs_its_chain_and_keeps_its_calendar(example, conn):
    app = example("etl/nightly.py").app
    friday = datetime(2026, 12, 18, 0, 0, tzinfo=UTC)
    async with stepper(app, start=friday) as step:
        assert await completed_after(step, conn, timedelta(hours=2)) == {
            "extract-orders": 1,
            "extract-customers": 1,
            "load-orders": 1,
            "load-customers": 1,
            "repair-customers": 1,
            "sales-report": 1,
        }
        assert await completed_after(step, conn, timedelta(days=2)) == {}, "Saturday and Sunday"
        assert (await completed_after(step, conn, timedelta(days=1)))["sales-report"] == 1
        await completed_after(step, conn, timedelta(days=3))
        assert await completed_after(step, conn, timedelta(days=1)) == {}, "the 25th is a holiday"


async def completed_after(step, conn, time: timedelta) -> dict[str, int]:
    """What was completed when this time had passed, hour by hour."""
    before = await conn.fetchval("SELECT coalesce(max(id), 0) FROM interlock.execution")
    for _ in range(int(time / timedelta(hours=1))):
        step.advance(timedelta(hours=1))
        await step.drain()
    rows = await conn.fetch(
        "SELECT m.external_id, count(*) FROM interlock.execution e JOIN interlock.manifest m ON m.id = e.manifest_id"
        " WHERE e.id > $1 AND e.state = 'completed' GROUP BY 1",
        before,
    )
    return dict(map(tuple, rows))


async def test_an_order_its_invoice_and_its_message_share_their_fate(example, conn):
    orders = example("fastapi_app/orders.py")
    await conn.execute(orders.TABLE)
    async with orders.app.running():
        number = await orders.place_order(conn, "book")
        with pytest.raises(orders.SoldOut):
            await orders.place_order(conn, "unobtainium")
        handle = await orders.print_invoice.aenqueue(number)
        assert await handle.aresult(timeout=60) == f"invoice-{number}.pdf"
    assert await conn.fetchval("SELECT count(*) FROM orders") == 1
    assert await conn.fetchval("SELECT count(*) FROM interlock.outbox") == 1
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue WHERE key IS NOT NULL") == 1


async def test_the_api_takes_orders_or_says_what_it_needs(example, conn):
    if importlib.util.find_spec("fastapi") is None:
        with pytest.raises(SystemExit, match="pip install fastapi"):
            example("fastapi_app/api.py")
        return
    api = example("fastapi_app/api.py").api
    async with api.router.lifespan_context(api):
        assert await post(api, "/orders/book") == (201, {"order": 1})
        assert (await post(api, "/orders/unobtainium"))[0] == 409
        assert (await post(api, "/invoices/1/again"))[0] == 202
    assert await conn.fetchval("SELECT count(*) FROM interlock.work_queue") == 2


async def post(api: Any, path: str) -> tuple[int, Any]:
    """One request, without a network."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"}
    rest = {"path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"", "headers": []}
    await api({**scope, **rest, "client": ("x", 1), "server": ("x", 80), "state": {}}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body)


def test_the_fleet_finishes_though_a_server_is_killed(fleet, migrated):
    env = {"INTERLOCK_DSN": migrated, "PICTURES": "12"}
    process = fleet.command(sys.executable, str(EXAMPLES / "several_servers/fleet.py"), env=env)
    assert process.wait_blocking(PATIENCE) == 0, process.output("stderr")
    assert "killed server-1 while it worked" in process.output("stdout")
    assert "12 of 12 pictures" in process.output("stdout")


@pytest.mark.parametrize("name", ["compose.yaml", "interlock.service", "Dockerfile"])
def test_what_deploys_them_names_what_exists(name):
    text = (EXAMPLES / "several_servers" / name).read_text()
    options = set(map(variable, known_options()))
    assert set(re.findall(r"\bINTERLOCK_[A-Z_]+", text)) <= options
    assert "jobs:app" in text


def test_the_image_is_built_from_files_of_the_clone():
    """A package that others may publish under our name must not be installed in our place."""
    lines = (EXAMPLES / "several_servers" / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert [name for name in copied if not (EXAMPLES.parent / name).exists()] == []
    assert [line for line in lines if "pip install" in line] == ["RUN pip install --no-cache-dir /interlock"]
    assert (
        "context: ../.., dockerfile: examples/several_servers/Dockerfile"
        in (EXAMPLES / "several_servers" / "compose.yaml").read_text()
    )


def test_every_example_is_in_the_list():
    listed = (EXAMPLES / "README.md").read_text()
    names = {path.name for path in EXAMPLES.iterdir() if path.name not in {"README.md", "__pycache__"}}
    assert {name for name in names if f"({name}" not in listed} == set()
