"""A session of every command about work against a running server, with its JSON read and checked."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest

from interlock import Interlock
from tests.harness import databases
from tests.harness.commands import every_path, writing_paths
from tests.harness.profile import SHORT_LEASES
from tests.harness.waiting import eventually_blocking
from tests.integration.cli.conftest import clean_environment
from tests.integration.cli.in_process import Console

APP = """
import asyncio
from datetime import timedelta
from interlock import Interlock, cron, every, exclude

app = Interlock(name="shop")

@app.train
async def greet(name: str, times: int = 1) -> str:
    return f"hello {name}! " * times

def hear(reason: str) -> str:
    return reason

async def give_up(reason: str) -> None:
    raise RuntimeError(reason)

fail = app.chain("fail", hear, give_up, max_attempts=1)

@app.train
async def wait(seconds: float = 60) -> None:
    await asyncio.sleep(seconds)

@app.timer(every(hours=1), name="poll")
async def poll() -> None: ...

etl = app.group("etl", max_active_jobs=3, priority=20)
weekend = [exclude.weekdays("sat", "sun")]
extract = app.schedule("extract", greet.bind("Ada"), cron("30 2 * * *", tz="Europe/Berlin"), group=etl, exclude=weekend)
extract.then("load", greet.bind("Bob"))
extract.then("repair", greet.bind("Eve"), dormant=True)
app.schedule("breaks", fail.bind(reason="no luck"))
app.schedule("waits", wait.bind())
"""
DEAD_MESSAGE = """
INSERT INTO interlock.outbox (message_id, topic, payload, state, failure, ended_at)
VALUES ('m1', 'mail', '{}', 'dead', 'max_attempts', now())
"""
QUICK = {f"INTERLOCK_{name.upper()}": f"{value.total_seconds()}s" for name, value in SHORT_LEASES.items()}


@pytest.fixture
def console(monkeypatch, capsys, tmp_path, migrated) -> Console:
    found = Console(monkeypatch, capsys, tmp_path)
    found.always = ["--dsn", migrated]
    return found


@pytest.fixture
def shop(console, fleet, migrated) -> str:
    """The name of the app, with a server of it running elsewhere."""
    module = console.module(APP)
    env = clean_environment() | QUICK | {"INTERLOCK_DSN": migrated, "PYTHONPATH": str(console.folder)}
    fleet.command(sys.executable, "-m", "interlock", "run", "-a", f"{module}:app", "--server-name", "blue", env=env)
    eventually_blocking(lambda: console.json("manifests", "list"), 60, "manifests of the server")
    return f"{module}:app"


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


def acts(console: Console) -> list[tuple[str, str, str]]:
    return [(act["action"], act["target_kind"], act["target"]) for act in reversed(console.json("audit", "list"))]


LEAVES = {
    "dead-letters acknowledge": [("acknowledge", "dead_letter")],
    "dead-letters requeue": [("requeue", "dead_letter")],
    "enqueue": [("enqueue", "train")],
    "executions cancel": [("cancel", "manifest"), ("cancel", "execution")],
    "executions rerun": [("rerun", "execution")],
    "groups set": [("set", "group")],
    "locks release": [("release", "lock")],
    "manifests disable": [("disable", "manifest")],
    "manifests enable": [("enable", "manifest")],
    "manifests prune": [("prune", "manifest")],
    "manifests trigger": [("trigger", "manifest")],
    "outbox park": [("park", "topic")],
    "outbox redrive": [("redrive", "message")],
    "outbox unpark": [("unpark", "topic")],
    "pause": [("pause", "train")],
    "queue cancel": [("cancel", "entry")],
    "resume": [("resume", "train")],
    "upkeep run": [("forget", "history")],
}
"""What each command that changes something leaves in the audit."""
ELSEWHERE = {
    "run": "the server of this session",
    "runner": "tests/acceptance/test_runner.py, which kills some",
    "demo": "tests/acceptance/test_demo.py, with a database of its own",
    "dev": "tests/acceptance/test_dev.py, with a file that changes",
}


def test_a_session_of_every_command_against_a_running_server(console, shop, migrated):
    looked_at(console)
    switched(console)
    ran(console, shop)
    resolved(console)
    cancelled(console)
    repeated(console)
    deployed(console, shop, migrated)
    asked_about(console, shop)
    held_and_sent(console, shop, migrated)
    kept(console, migrated)
    everything_is_in_the_audit(console)
    assert console.done | set(ELSEWHERE) == every_path(), "each command has a step here"


def looked_at(console: Console) -> None:
    lines = {line["external_id"]: line for line in console.json("manifests", "list")}
    assert set(lines) == {"extract", "load", "repair", "breaks", "waits"}
    assert (lines["extract"]["group"], lines["load"]["parent"], lines["repair"]["schedule_kind"]) == (
        "etl", "extract", "dormant",
    )  # fmt: skip
    assert moment(lines["extract"]["next_run_at"]) > datetime.now(UTC)
    assert [one["external_id"] for one in console.json("manifests", "list", "--limit", 2)] == ["breaks", "extract"]
    assert [one["external_id"] for one in console.json("manifests", "list", "--limit", 2, "--after", "extract")] == [
        "load", "repair",
    ]  # fmt: skip
    shown = console.json("manifests", "show", "extract")
    assert (shown["children"], shown["input"], shown["schedule_text"]) == (
        ["load", "repair"], {"name": "Ada"}, "cron 30 2 * * * (Europe/Berlin)",
    )  # fmt: skip
    assert isinstance(shown["id"], str)
    fires = console.json("manifests", "next", "extract", "-n", 5)
    assert [one["fires"] for one in fires].count(True) == 5
    assert all(moment(one["at"]) and one["zone"] == "Europe/Berlin" for one in fires)
    assert any("excluded: sat, sun" in one["marks"] for one in fires)
    graph = console.json("manifests", "graph")
    assert {(edge["from"], edge["to"], edge["dormant"]) for edge in graph["edges"]} == {
        ("extract", "load", False), ("extract", "repair", True),
    }  # fmt: skip
    [server] = console.json("servers", "list")
    assert server["name"] == "blue"
    assert console.json("queue", "list") == []
    assert console.json("dead-letters", "list") == []


def switched(console: Console) -> None:
    assert console.json("manifests", "disable", "extract", "--note", "holiday", "--actor", "ada") == {
        "action": "disable", "target": "extract", "dry_run": False, "changed": True,
    }  # fmt: skip
    assert not console.json("manifests", "disable", "extract")["changed"]
    assert console.json("manifests", "show", "extract")["next_run_at"] is None
    assert console.json("manifests", "enable", "extract", "--dry-run")["changed"]
    assert not console.json("manifests", "show", "extract")["enabled"]
    assert console.json("manifests", "enable", "extract")["changed"]
    changed = console.json("groups", "set", "etl", "--cap", 7, "--priority", 5)
    assert (changed["before"], changed["settings"]["max_active_jobs"]) == ({"max_active_jobs": 3, "priority": 20}, 7)
    [etl] = [group for group in console.json("groups", "list") if group["name"] == "etl"]
    assert (etl["max_active_jobs"], etl["priority"], etl["manifests"]) == (7, 5, 1)
    assert console.json("pause", "greet", "--yes")["changed"]
    assert console.json("resume", "greet")["changed"]


def ran(console: Console, shop: str) -> None:
    console.json("pause", "--yes")
    waits = console.json("enqueue", "greet", "--arg", "name=Ada", "--arg", "times=2", "--delay", "5m")
    [entry] = [one for one in console.json("queue", "list") if one["id"] == waits["entry_id"]]
    assert (entry["train"], entry["ready"], entry["kind"]) == ("greet", False, "adhoc")
    assert console.json("queue", "show", entry["id"])["input"] == {"name": "Ada", "times": 2}
    assert '{"name": "Ada", "times": 2}' in console("queue", "show", entry["id"]).stdout
    assert console.json("queue", "cancel", entry["id"], "--yes")["entry_ids"] == [entry["id"]]
    console.json("resume")
    done = console.json("enqueue", "greet", "--arg", "name=3", "--wait", "--timeout", "20s")
    assert (done["status"], done["output"], done["input"]) == ("completed", "hello 3! ", {"name": "3"})
    plain = console("enqueue", "-a", shop, "greet", "--input", '{"name": "Eve"}', "--wait", "--timeout", "20s")
    assert (plain.exit_code, plain.stdout) == (0, '"hello Eve! "\n')
    failed = console("enqueue", "fail", "--arg", "reason=no luck", "--wait", "--timeout", "20s", "--json")
    assert (failed.exit_code, failed.data["status"]) == (1, "failed")
    assert "RuntimeError: no luck" in failed.stderr
    late = console("enqueue", "wait", "--wait", "--timeout", "200ms", "--json")
    assert (late.exit_code, late.data["status"]) == (6, "timeout")


def resolved(console: Console) -> None:
    console.json("manifests", "trigger", "breaks", "--note", "try it")
    letters = eventually_blocking(
        lambda: len(found := console.json("dead-letters", "list")) == 2 and found, 20, "two dead letters"
    )
    first, second = letters
    assert (first["train"], first["reason"], second["external_id"]) == ("fail", "max_attempts", "breaks")
    shown = console.json("dead-letters", "show", second["id"])
    assert (shown["input"], shown["junction"]) == ({"reason": "no luck"}, "give_up")
    assert "give_up" in console("dead-letters", "show", second["id"]).stdout
    assert "RuntimeError: no luck" in shown["traceback"]
    assert len(console.json("dead-letters", "requeue", "--train", "fail", "--yes", "--dry-run")["dead_letters"]) == 2
    again = console.json("dead-letters", "requeue", first["id"], "--yes", "--note", "repaired")
    assert [one["id"] for one in again["dead_letters"]] == [first["id"]]
    assert "retried already" in console.refused(1, "dead-letters", "requeue", first["id"], "--yes")
    closed = console.json("dead-letters", "acknowledge", first["id"], second["id"], "--yes", "--note", "known")
    assert (closed["dead_letters"], closed["skipped"]) == ([{"id": second["id"], "entry_id": None}], [first["id"]])
    eventually_blocking(lambda: console.json("dead-letters", "list"), 60, "its third end")
    assert len(console.json("dead-letters", "acknowledge", "--all", "--yes")["dead_letters"]) == 1
    assert {one["state"] for one in console.json("dead-letters", "list", "--state", "all")} == {
        "retried", "acknowledged",
    }  # fmt: skip


def cancelled(console: Console) -> None:
    def running() -> list[dict]:
        return console.json("executions", "list", "--train", "wait", "--state", "in_progress")

    console.json("manifests", "trigger", "waits")
    found = eventually_blocking(lambda: len(running()) == 2 and running(), 60, "two that wait")
    by_manifest = console.json("executions", "cancel", "--manifest", "waits", "--yes")
    assert by_manifest["asked_to_stop_ids"] == [found[0]["id"]]
    assert console.json("executions", "cancel", found[1]["id"], "--yes")["asked_to_stop_ids"] == [found[1]["id"]]
    eventually_blocking(lambda: not running(), 60, "the end of both")
    assert console.json("executions", "cancel", "--group", "etl", "--yes")["asked_to_stop_ids"] == []


def repeated(console: Console) -> None:
    [done, *_] = console.json("executions", "list", "--train", "greet", "--state", "completed")
    entry = console.json("executions", "rerun", done["id"], "--arg", "times=3", "--note", "louder")["entry_id"]

    def reruns() -> list[dict]:
        return [one for one in console.json("executions", "show", done["id"])["reruns"] if one["state"] == "completed"]

    [rerun] = eventually_blocking(reruns, 60, "the end of the second run")
    assert rerun["entry_id"] == entry
    second = console.json("executions", "show", rerun["execution_id"])
    assert (second["previous_execution_id"], second["input"]["times"]) == (done["id"], 3)
    assert second["output"] == f"hello {second['input']['name']}! " * 3
    assert [step["what"] for step in second["timeline"]] == ["queued", "dispatched", "started", "completed"]
    assert all(step["after"] >= 0 for step in second["timeline"][1:])


def deployed(console: Console, shop: str, dsn: str) -> None:
    console.json("manifests", "disable", "waits")
    found = {one["name"]: one for one in console.json("manifests", "diff", "-a", shop)}
    assert found["etl"]["kept"]["max_active_jobs"] == {"code": 3, "stored": 7}
    assert found["waits"]["kept"] == {"enabled": {"code": True, "stored": False}}
    changed = APP.replace('cron("30 2 * * *"', 'cron("0 4 * * *"').replace(
        'app.schedule("breaks"', 'app.schedule("new"'
    )
    newer = console.module(changed) + ":app"
    found = {one["name"]: one for one in console.json("manifests", "diff", "-a", newer)}
    assert {name: one["what"] for name, one in found.items()} == {
        "etl": "keep", "waits": "keep", "extract": "change", "new": "create", "breaks": "prune",
    }  # fmt: skip
    assert set(found["extract"]["fields"]) == {"schedule"}
    assert console.json("manifests", "prune", "-a", newer, "--yes")["manifests"] == []
    databases.execute(dsn, "UPDATE interlock.manifest SET external_id = 'left' WHERE external_id = 'repair'")
    assert console.json("manifests", "prune", "-a", shop, "--yes")["manifests"] == ["left"]


def asked_about(console: Console, shop: str) -> None:
    """Settings, fleet and database; what a program reads of them."""
    assert console.json("config", "-a", shop)["name"] == {"value": "shop", "origin": "argument"}
    assert console.json("dsn", "-a", shop)["embedded"] is False
    found = console.json("explain", "waits")
    assert (found["subject"], [one["code"] for one in found["blockers"]]) == ("waits", ["MANIFEST_DISABLED"])
    advised = found["blockers"][0]["command"]
    assert advised.startswith("interlock --dsn ")  # the flags of the question are those of the answer
    assert advised.endswith(" manifests enable waits")
    health = console.json("health", "--server", "blue")
    assert (health["state"], {one["state"] for one in health["checks"]}) == ("healthy", {"healthy"})
    examined = console("doctor", "--json")
    assert examined.exit_code == (5 if examined.data else 0)
    assert all(set(one) == {"check", "found", "advice", "command"} for one in examined.data)
    assert [server["name"] for server in console.json("top", "--seconds", 0)["servers"]] == ["blue"]


def held_and_sent(console: Console, shop: str, dsn: str) -> None:
    [timer] = console.json("timers", "list", "-a", shop)
    assert (timer["name"], timer["max_concurrency"]) == ("poll", 1)
    databases.run_blocking(hold(dsn, "report"))
    [slot] = console.json("locks", "list", "report")
    assert console.json("locks", "release", "report", slot["slot"], "--yes", "--note", "hangs")["target"]
    assert console.json("locks", "list", "report") == []
    databases.execute(dsn, DEAD_MESSAGE)
    [message] = console.json("outbox", "list", "--state", "dead")
    assert console.json("outbox", "show", message["id"])["message_id"] == "m1"
    assert console.json("outbox", "park", "mail")["changed"]
    assert console.json("outbox", "redrive", "m1", "--yes")["messages"] == [message["id"]]
    [topic] = console.json("outbox", "stats")
    assert (topic["topic"], topic["ready"], topic["parked"]) == ("mail", 1, True)
    assert console.json("outbox", "unpark", "mail")["changed"]
    assert console.json("outbox", "doctor") == []


async def hold(dsn: str, name: str) -> None:
    app = Interlock(dsn)
    (await app.locks.atry_hold(name, slots=1)).abandon()
    await app.aclose()


def kept(console: Console, dsn: str) -> None:
    assert console.json("schema", "status")["state"] == "current"
    assert console("schema", "check", "--json").exit_code == 0
    assert console.json("schema", "apply")
    assert "create table" in console("schema", "sql").stdout.lower()
    console.json("schema", "sql")
    assert console.json("upkeep", "run", "--dry-run")["rows"]["executions"] == 0
    databases.execute(
        dsn, "UPDATE interlock.execution SET ended_at = ended_at - interval '1 year' WHERE train = 'fail'"
    )
    assert console.json("upkeep", "run", "--yes")["executions_by_train"] == {"fail": 3}


def everything_is_in_the_audit(console: Console) -> None:
    assert set(LEAVES) == writing_paths(), "each command that changes something says here what it leaves"
    expected = {row for rows in LEAVES.values() for row in rows}
    assert {act[:2] for act in acts(console)} == expected
    [first] = console.json("audit", "list", "--target-kind", "manifest", "--target", "extract", "--by", "ada")
    assert (first["action"], first["via"], first["note"]) == ("disable", "cli", "holiday")
    assert (first["before"], first["after"]) == ({"enabled": True}, {"enabled": False})
    assert moment(first["at"])
