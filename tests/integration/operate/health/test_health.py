"""Whether the fleet works: for those who ask from outside, and for those who ask a server itself."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import timedelta
from urllib.error import HTTPError
from urllib.request import urlopen

import asyncpg
import pytest

from interlock import Interlock
from interlock.observe.events import ProbesListening
from interlock.operate.health import read_health
from tests.harness.ports import free_port
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually, eventually_blocking
from tests.integration.cli.conftest import clean_environment


@pytest.fixture
async def conn(migrated):
    conn = await asyncpg.connect(migrated)
    yield conn
    await conn.close()


def serving(dsn: str, **options) -> Interlock:
    app = Interlock(dsn, **{**SHORT_LEASES, "server_name": "one", **options})

    @app.train
    async def work() -> None: ...

    app.work_train = work
    return app


def states(health) -> dict[str, str]:
    return {check.name: str(check.state) for check in health.checks}


async def test_without_a_server_it_is_unhealthy_and_with_one_healthy(migrated):
    async with Interlock(migrated) as client:
        assert (await client.ahealth()).state == "unhealthy"
        assert states(await client.ahealth(server="one")) == {"server": "unhealthy"}
        async with serving(migrated).running():
            assert states(await client.ahealth()) == dict.fromkeys(
                ["servers", "worker", "manifests", "queue"], "healthy"
            )
            assert states(await client.ahealth(server="one")) == {"server": "healthy"}
            assert states(await client.ahealth(server="two")) == {"server": "unhealthy"}


async def test_a_missing_role_and_work_that_waits_for_long_degrade_it(migrated, conn):
    app = serving(migrated)
    async with Interlock(migrated) as client, app.running(["manifests"]):
        health = await client.ahealth()
        assert (states(health)["worker"], health.state) == ("degraded", "degraded")
        await app.work_train.aenqueue()
        database = await client.adatabase()
        assert states(await read_health(database))["queue"] == "healthy"
        assert states(await read_health(database, long_wait=timedelta(0)))["queue"] == "degraded"
        await conn.execute("UPDATE interlock.server SET state = 'draining'")
        assert states(await client.ahealth(server="one")) == {"server": "degraded"}
        assert (await client.ahealth()).state == "unhealthy"


async def test_runners_do_the_work_where_somebody_submits_it(migrated, conn):
    async with Interlock(migrated) as client, serving(migrated).running(["dispatch", "manifests"]):
        assert states(await client.ahealth())["worker"] == "degraded"
        there = serving(migrated, server_name="two", runner_secret="a secret of some length")
        async with there.running(runner="127.0.0.1:0"):
            assert (await client.ahealth()).state == "healthy"
            await conn.execute("UPDATE interlock.server SET state = 'lost' WHERE name = 'one'")
            assert states(await client.ahealth())["worker"] == "degraded"


def test_the_command_says_it_by_its_exit_code(interlock, migrated, database, fleet):
    none = interlock("health", "--dsn", migrated, "--json")
    assert (none.returncode, json.loads(none.stdout)["state"]) == (1, "unhealthy"), none.stderr
    assert interlock("health", "--dsn", database).returncode == 4


class Asking:
    """Asks the probes of an app that runs in this process."""

    def __init__(self, app: Interlock) -> None:
        self._listening: list[ProbesListening] = []
        app.events.subscribe(self._listening.append, (ProbesListening,))

    async def __call__(self, path: str) -> tuple[int, str]:
        said = self._listening[0]
        reader, writer = await asyncio.open_connection(said.host, said.port)
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)["detail"]

    async def answers(self, path: str, status: int) -> None:
        async def does() -> bool:
            return (await self(path))[0] == status

        await eventually(does, 60, f"/{path} {status}")


async def test_a_running_server_is_started_alive_and_ready(migrated):
    app = serving(migrated)
    ask = Asking(app)
    async with app.running(["worker"], probes="0"):
        assert [await ask(path) for path in ("startup", "live", "ready")] == [
            (200, "started"),
            (200, "alive"),
            (200, "ready"),
        ]


async def test_a_server_is_not_ready_while_the_database_is_away_and_ready_again_after(own_postgres):
    app = serving(own_postgres.dsn)
    ask = Asking(app)
    async with app.running(["worker"], probes="0"):
        assert (await ask("ready"))[0] == 200
        await asyncio.to_thread(own_postgres.stop, "immediate")
        await ask.answers("ready", 503)
        assert (await ask("live"))[0] == 200
        await asyncio.to_thread(own_postgres.start)
        await ask.answers("ready", 200)


async def test_a_draining_server_is_alive_and_not_ready(migrated):
    app = serving(migrated, shutdown_timeout=timedelta(seconds=20))
    began, may_end, ask = asyncio.Event(), asyncio.Event(), Asking(app)

    @app.train
    async def slow() -> None:
        began.set()
        await may_end.wait()

    async def serve(over: asyncio.Event) -> None:
        async with app.running(["worker"], probes="0"):
            await slow.aenqueue()
            await over.wait()

    over = asyncio.Event()
    running = asyncio.create_task(serve(over))
    try:
        await asyncio.wait_for(began.wait(), 60)
        over.set()
        await ask.answers("ready", 503)
        assert await ask("ready") == (503, "draining")
        assert (await ask("live"))[0] == 200
    finally:
        may_end.set()
        await running


async def test_a_wrong_address_is_refused_before_anything_is_opened(interlock):
    done = interlock("run", "--probes", "shop.example:80", "--dsn", "postgresql://127.0.0.1:1/x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the address itself" in done.stderr


def test_run_answers_probes_until_it_stops(fleet, migrated):
    port = free_port()
    env = clean_environment() | {"INTERLOCK_DSN": migrated, "INTERLOCK_PROBES": str(port)}
    server = fleet.command(sys.executable, "-m", "interlock", "run", "--roles", "worker", env=env)
    eventually_blocking(lambda: status_of(port, "ready") == 200, 60)
    assert status_of(port, "live") == 200
    server.terminate()
    assert server.wait_blocking() == 0
    assert status_of(port, "live") is None


def status_of(port: int, path: str) -> int | None:
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5) as answer:
            return answer.status
    except HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return None
