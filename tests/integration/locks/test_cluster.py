"""A real cluster of three nodes: all slots of a name lie on one of them, whichever it is."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.asyncio.cluster import ClusterNode
from redis.crc import key_slot
from redis.exceptions import ConnectionError as ConnectionLost

from interlock.errors import InvalidSetting, LockServiceUnavailable
from interlock.locks import redis as redis_locks
from interlock.locks.redis import RedisLine, RedisLocks
from interlock.model.lease import Grant, Held, Refusal
from tests.harness import run_folder
from tests.harness.hygiene import allow_process
from tests.harness.ports import free_port
from tests.harness.valkey import HASH_SLOTS, ValkeyCluster, ask, server_binaries
from tests.harness.waiting import eventually
from tests.integration.locks.conftest import BINARIES, request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from interlock.locks.lease import Lease

NAMES = ("a", "b", "c", "d", "timer:{x}", "{e}")
NOTHING = timedelta(0)


@pytest.fixture(scope="module", params=[*BINARIES])
def cluster(request):
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=run_folder.path()))
    cluster = ValkeyCluster(BINARIES[request.param], folder)
    for node in cluster.nodes:
        allow_process(node.pid)
    yield cluster
    cluster.kill()


@pytest.fixture
def locks(cluster, open_redis) -> RedisLocks:
    for node in cluster.nodes:
        ask(node.port, "FLUSHALL")
    return open_redis(cluster.url)


async def test_slots_of_names_on_every_node_are_taken_extended_listed_and_given_back(cluster, locks):
    wishes = [request(name, slots=2) for name in NAMES]
    grants = [await locks.acquire(wish) for wish in wishes]
    assert all(isinstance(grant, Grant) for grant in grants)
    assert all(ask(node.port, "DBSIZE") > b":0" for node in cluster.nodes)
    held = [Held(wish.name, grant.slot, wish.token, wish.ttl) for wish, grant in zip(wishes, grants, strict=True)]
    assert set(await locks.extend(held)) == {wish.token for wish in wishes}
    line = await locks.line()
    assert set(await line.extend(held)) == {wish.token for wish in wishes}
    await line.close()
    assert {holder.name for holder in await locks.holders()} == set(NAMES)
    for name in NAMES:
        assert isinstance(await locks.acquire(request(name, slots=2)), Grant)
        assert isinstance(await locks.acquire(request(name, slots=2)), Refusal)
    for wish in wishes:
        assert await locks.release(wish.name, wish.token, NOTHING)
    assert (await locks.force_release("a", 1)).name == "a"
    assert len(await locks.holders()) == len(NAMES) - 1


@pytest.fixture
def sent(monkeypatch) -> list[tuple[object, ...]]:
    """The questions for a slot so far; the answer to the first one is lost."""
    questions: list[tuple[object, ...]] = []
    send = ClusterNode.execute_command

    async def lose_one_answer(node, *command, **options):
        answer = await send(node, *command, **options)
        if command[0].startswith("EVAL"):
            questions.append(command)
            if len(questions) == 1:
                raise ConnectionLost
        return answer

    monkeypatch.setattr(ClusterNode, "execute_command", lose_one_answer)
    return questions


async def test_an_acquire_that_is_sent_again_because_its_answer_was_lost_takes_no_second_slot(locks, sent):
    grant = await locks.acquire(request(slots=3))
    assert len(sent) == 2
    assert [(holder.slot, holder.fence) for holder in await locks.holders()] == [(grant.slot, grant.fence)]


async def test_control_an_acquire_that_does_not_know_its_own_token_takes_a_second_slot(locks, sent, monkeypatch):
    script = redis_locks._script
    monkeypatch.setattr(redis_locks, "_script", lambda name: changed(script(name)[0], "found[3] == token", "false"))
    await locks.acquire(request(slots=3))
    assert len(await locks.holders()) == 2


@pytest.fixture
def move_x(cluster) -> Iterator[Callable[[], None]]:
    """Begins to move the hash slot of the name x to another node, and none of its keys."""
    number = key_slot(b"x")
    source, target = (Redis(port=cluster.nodes[index].port) for index in move_of(number))

    def begin() -> None:
        target.execute_command("CLUSTER SETSLOT", number, "IMPORTING", source.execute_command("CLUSTER MYID"))
        source.execute_command("CLUSTER SETSLOT", number, "MIGRATING", target.execute_command("CLUSTER MYID"))

    yield begin
    for node in (source, target):
        node.execute_command("CLUSTER SETSLOT", number, "STABLE")
        node.close()


def move_of(number: int) -> tuple[int, int]:
    """The node that has the hash slot, and another."""
    owner = number * 3 // HASH_SLOTS
    return owner, (owner + 1) % 3


async def test_a_slot_that_is_held_is_not_given_away_while_the_cluster_moves_it_to_another_node(locks, move_x):
    asked = request()
    grant = await locks.acquire(asked)
    move_x()
    with pytest.raises(LockServiceUnavailable):
        await locks.acquire(request())
    assert set(await locks.extend([Held("x", grant.slot, asked.token, asked.ttl)])) == {asked.token}
    assert [holder.fence for holder in await locks.holders()] == [grant.fence]


async def test_control_a_script_that_names_one_key_is_run_where_the_slots_are_not(locks, move_x, monkeypatch):
    script, naming_both = redis_locks._script, RedisLocks._keys
    monkeypatch.setattr(RedisLocks, "_keys", lambda *which: naming_both(*which)[:1])
    monkeypatch.setattr(redis_locks, "_script", lambda name: changed(script(name)[0], "KEYS[2]", "KEYS[1] .. ':open'"))
    assert isinstance(await locks.acquire(request()), Grant)
    move_x()
    assert isinstance(await locks.acquire(request()), Grant)


def changed(text: str, old: str, new: str) -> tuple[str, str]:
    text = text.replace(old, new)
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


async def test_whoever_calls_a_cluster_one_server_is_told_how_to_call_it(cluster, open_redis):
    locks = open_redis(cluster.url.replace("+cluster", ""))

    async def ask_for_all() -> None:
        for name in NAMES:
            await locks.acquire(request(name))

    with pytest.raises(LockServiceUnavailable, match=r"write redis\+cluster:// in redis_url"):
        await ask_for_all()


@pytest.fixture
def first_node_dies(
    open_redis, open_locks, monkeypatch
) -> Iterator[Callable[[timedelta, timedelta], Awaitable[tuple[Lease, Lease]]]]:
    """A lease on the node that `redis_url` names, which is gone since, and a lease on another."""
    monkeypatch.setattr("interlock.locks.keeper._SLACK", 60)  # all are due whenever one is
    folder = Path(tempfile.mkdtemp(prefix="cluster-", dir=run_folder.path()))
    cluster = ValkeyCluster(server_binaries()[0], folder)
    locks = open_locks(open_redis(cluster.url))

    async def two_leases(ttl: timedelta, other_ttl: timedelta) -> tuple[Lease, Lease]:
        for node in cluster.nodes:
            ask(node.port, "CONFIG SET cluster-require-full-coverage no")
        here, there = (next(name for name in NAMES if move_of(key_slot(name.encode()))[0] == node) for node in (0, 1))
        on_first = await locks.atry_hold(here, ttl=ttl, on_lost="mark")
        on_other = await locks.atry_hold(there, ttl=other_ttl, on_lost="mark")
        first_time = on_first.answered, on_other.answered
        await eventually(
            lambda: on_first.answered > first_time[0] and on_other.answered > first_time[1], 60, "renewals"
        )
        cluster.nodes[0].kill()
        return on_first, on_other

    yield two_leases
    for node in cluster.nodes[1:]:
        node.kill()


async def test_a_node_that_is_gone_costs_no_lease_on_another_even_if_it_is_the_one_in_the_url(first_node_dies):
    lost, kept = await first_node_dies(timedelta(seconds=6), timedelta(seconds=20))
    for _ in range(3):  # on lines that were opened when the node was gone, all but the first
        answered = kept.answered
        await eventually(lambda: kept.answered > answered, 60, "one more renewal")  # noqa: B023  awaited in place
    await eventually(lambda: lost.lost, 60, "the end of the lease on the node that is gone")
    kept.ensure()
    kept.abandon()


async def test_control_where_all_are_renewed_together_a_node_that_is_gone_costs_the_others_their_leases(
    first_node_dies, monkeypatch
):
    monkeypatch.setattr(RedisLine, "server_of", lambda *_: "all of them")
    _, other = await first_node_dies(timedelta(seconds=2), timedelta(seconds=2))
    await eventually(lambda: other.lost, 60, "the loss")


async def test_what_failed_last_leaves_no_connection_to_any_node_behind(cluster, monkeypatch):
    locks = RedisLocks(cluster.url, "failing")
    for name in NAMES:
        await locks.acquire(request(name))
    nodes, send = locks._clients.get().get_nodes(), ClusterNode.execute_command

    async def lose_every_slot(node, *command, **options):
        if command[0].startswith("EVAL"):
            raise ConnectionLost
        return await send(node, *command, **options)

    with monkeypatch.context() as cut:
        cut.setattr(ClusterNode, "execute_command", lose_every_slot)
        with pytest.raises(LockServiceUnavailable):
            await locks.acquire(request())
    assert any(connection.is_connected for node in nodes for connection in node._connections)
    await locks.close()
    assert not any(connection.is_connected for node in nodes for connection in node._connections)


async def test_a_cluster_that_is_gone_is_a_lock_service_that_does_not_answer(open_redis):
    locks = open_redis(f"redis+cluster://127.0.0.1:{free_port()}")
    with pytest.raises(LockServiceUnavailable):
        await locks.acquire(request())


@pytest.mark.parametrize(
    "wrong",
    [
        "localhost:6379",
        "http://ada:secret@localhost",
        "redis://localhost:port",
        "rediss://ada:secret@localhost?ssl_ca_cert=ca.pem",
        "redis+cluster://ada:secret@localhost?ssl_ca_cert=ca.pem",
        "redis://ada:secret@localhost?decode_responses=True",
        "redis+cluster://ada:secret@localhost?decode_responses=True",
        "redis://ada:secret@localhost?retry=3",
    ],
)
async def test_an_address_that_is_none_is_named_without_its_password(wrong, open_redis):
    with pytest.raises(InvalidSetting, match="redis_url") as raised:
        await open_redis(wrong).acquire(request())
    assert "secret" not in str(raised.value)
