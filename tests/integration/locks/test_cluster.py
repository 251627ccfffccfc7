"""A real cluster of three nodes: all slots of a name lie on one of them, whichever it is."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis.asyncio.cluster import ClusterNode
from redis.exceptions import ConnectionError as ConnectionLost

from interlock.errors import InvalidSetting, LockServiceUnavailable
from interlock.model.lease import Grant, Held, Refusal
from tests.harness import run_folder
from tests.harness.hygiene import allow_process
from tests.harness.valkey import ValkeyCluster, ask
from tests.integration.locks.conftest import BINARIES, request

if TYPE_CHECKING:
    from interlock.locks.redis import RedisLocks

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


async def test_an_acquire_whose_answer_was_lost_is_not_sent_again(locks, monkeypatch):
    """Under the same token it would take a second slot."""
    assert isinstance(await locks.acquire(request(slots=3)), Grant)
    sent, send = [], ClusterNode.execute_command

    async def lose_the_answer(node, *command, **options):
        answer = await send(node, *command, **options)
        if command[0] == "EVALSHA":
            sent.append(command)
            raise ConnectionLost
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(ClusterNode, "execute_command", lose_the_answer)
        with pytest.raises(LockServiceUnavailable):
            await locks.acquire(request(slots=3))
    assert len(sent) == 1
    assert len(await locks.holders()) == 2


async def test_whoever_calls_a_cluster_one_server_is_told_how_to_call_it(cluster, open_redis):
    locks = open_redis(cluster.url.replace("+cluster", ""))

    async def ask_for_all() -> None:
        for name in NAMES:
            await locks.acquire(request(name))

    with pytest.raises(LockServiceUnavailable, match=r"write redis\+cluster:// in redis_url"):
        await ask_for_all()


@pytest.mark.parametrize("wrong", ["localhost:6379", "http://ada:secret@localhost", "redis://localhost:port"])
async def test_an_address_that_is_none_is_named_without_its_password(wrong, open_redis):
    with pytest.raises(InvalidSetting, match="redis_url") as raised:
        await open_redis(wrong).acquire(request())
    assert "secret" not in str(raised.value)
