"""Lock slots in Redis or Valkey: one script per verb, so that every verb is atomic and one round trip.

A slot is the key `interlock:<namespace>:{<name>}:slot:<n>`; the braces are the hash tag that keeps the slots of a name
on one node of a cluster, which the scheme `redis+cluster://` names. Durability is the server's: after a restart that
forgot the keys, every holder is told that its lease is lost, and fences go on growing because they follow the server's
clock.
"""

from __future__ import annotations

from functools import cache, lru_cache
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.errors import InvalidSetting, LockServiceUnavailable
from interlock.locks.redis_records import milliseconds, question_of, read_answer, read_holder
from interlock.model.packages import require
from interlock.observe.redact import without_password
from interlock.store.per_loop import PerLoop

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from uuid import UUID

    from redis.asyncio import Redis, RedisCluster

    Client: TypeAlias = Redis | RedisCluster

    from interlock.model.lease import Grant, Held, Holder, Refusal, SlotRequest

CONNECT_TIMEOUT = 3.0
NODE_TIMEOUT = 1.0  # a node of a cluster that says nothing for so long is passed over: the others may know more
_CLUSTER = "+cluster"


class RedisLocks:
    def __init__(self, url: str, namespace: str) -> None:
        require("redis", needed_by="the lock backend 'redis'")
        self._prefix, self._is_cluster = f"interlock:{_escaped(namespace)}:", _is_cluster(url)
        self._clients: PerLoop[Client] = PerLoop(lambda: _client(url), _close)
        self._lines: PerLoop[Client] = PerLoop(lambda: _client(url), _close)
        self.where = without_password(url)
        self.answering = _Answering(self.where)

    async def acquire(self, request: SlotRequest) -> Grant | Refusal:
        with self.answering:
            found = await _run(self._clients.get(), "acquire", self._keys(request.name), (question_of(request),))
        return read_answer(found.split(b"\0"), request.ttl)

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        with self.answering:
            return await self._extend(self._clients.get(), held)

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool:
        with self.answering:
            return await self._release(self._clients.get(), name, token, at_least)

    async def holders(self, name: str | None = None) -> list[Holder]:
        """A walk over the keys of the namespace: for people, not for the hot path."""
        pattern = f"{_escaped_pattern(self._prefix)}{{*}}:slot:*"
        with self.answering:
            client = self._clients.get()
            keys = [key.decode() async for key in client.scan_iter(match=pattern, count=500)]
            found = [holder for key in keys if (holder := await self._holder(client, key))]
        return sorted(
            (holder for holder in found if name in (None, holder.name)), key=lambda holder: (holder.name, holder.slot)
        )

    async def force_release(self, name: str, slot: int) -> Holder | None:
        base = self._base(name)
        with self.answering:
            keys = (f"{base}:slot:{slot}", f"{base}:open")
            found = await _run(self._clients.get(), "force_release", keys, (slot,))
        return read_holder(name, slot, found) if found else None

    async def line(self) -> RedisLine:
        """The same for an event loop: who has hung up still knows all nodes of a cluster, and not just the first."""
        return RedisLine(self, self._lines.get())

    def server_of(self, name: str) -> str:
        return self._server_of(self._clients.get(), name)

    async def close(self) -> None:
        await self._lines.close()
        await self._clients.close()

    async def _extend(self, client: Client, held: Sequence[Held]) -> dict[UUID, timedelta]:
        questions = [self._renewal(each) for each in held]
        if self._is_cluster:
            # One by one: a pipeline of this client first asks a node of its choice, which may be the one that is gone.
            answers = [await _run(client, "extend", *question) for question in questions]
        else:
            answers = await _run_all(client, "extend", questions)
        return {each.token: each.ttl for each, kept in zip(held, answers, strict=True) if kept}

    def _renewal(self, held: Held) -> tuple[tuple[str, str], tuple[str, int, int]]:
        base, listed = self._keys(held.name)
        return (f"{base}:slot:{held.slot}", listed), (held.token.hex, milliseconds(held.ttl), held.slot)

    async def _release(self, client: Client, name: str, token: UUID, at_least: timedelta) -> bool:
        return bool(await _run(client, "release", self._keys(name), (token.hex, milliseconds(at_least))))

    def _server_of(self, client: Any, name: str) -> str:
        if not self._is_cluster:
            return self.where
        from redis.exceptions import RedisClusterException  # noqa: PLC0415  the client loads on first use

        try:
            return str(client.get_node_from_key(self._base(name)).name)
        except RedisClusterException:  # nobody was asked yet
            return self.where

    async def _holder(self, client: Client, key: str) -> Holder | None:
        name, _, slot = key.removeprefix(self._prefix).rpartition(":slot:")
        found = await _run(client, "holder", (key,), ())
        return read_holder(_unescaped(name[1:-1]), int(slot), found) if found else None

    def _base(self, name: str) -> str:
        return f"{self._prefix}{{{_escaped(name)}}}"

    def _keys(self, name: str) -> tuple[str, str]:
        base = self._base(name)
        return base, f"{base}:open"


class _Answering:
    """Whatever goes wrong between us and the server is one error to those who want a lock."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """A class and not a generator: it is entered twice for each hold."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        from redis.exceptions import (  # noqa: PLC0415  the client loads on first use
            MovedError,
            RedisClusterException,
            RedisError,
        )

        if isinstance(error, MovedError):
            reason = "it is a node of a cluster: write redis+cluster:// in redis_url"
            raise LockServiceUnavailable(where=self._where, reason=reason) from error
        if isinstance(error, OSError | TimeoutError | RedisError | RedisClusterException):
            reason = without_password(str(error)) or "no answer in time"
            raise LockServiceUnavailable(where=self._where, reason=reason) from error


class RedisLine:
    """The keeper's own connections."""

    def __init__(self, locks: RedisLocks, client: Client) -> None:
        self._locks, self._client = locks, client

    async def extend(self, held: Sequence[Held]) -> dict[UUID, timedelta]:
        with self._locks.answering:
            return await self._locks._extend(self._client, held)  # noqa: SLF001  see above

    async def release(self, name: str, token: UUID, at_least: timedelta) -> bool:
        with self._locks.answering:
            return await self._locks._release(self._client, name, token, at_least)  # noqa: SLF001  see above

    def server_of(self, name: str) -> str:
        return self._locks._server_of(self._client, name)  # noqa: SLF001  see above

    async def close(self) -> None:
        await _close(self._client)


def _is_cluster(url: str) -> bool:
    return url.partition("://")[0].endswith(_CLUSTER)


def _client(url: str) -> Client:
    from redis.asyncio import Redis, RedisCluster  # noqa: PLC0415  the client loads on first use
    from redis.asyncio.retry import Retry  # noqa: PLC0415  see above
    from redis.backoff import NoBackoff  # noqa: PLC0415  see above
    from redis.exceptions import ConnectionError, ReadOnlyError  # noqa: A004, PLC0415  see above

    # Once more on a new connection, because servers and what lies between cut those that idle, and a server that became
    # a replica keeps them. No script does anything twice for the same token.
    retry = Retry(NoBackoff(), 1, supported_errors=(ConnectionError, ReadOnlyError))
    options: dict[str, Any] = {"socket_connect_timeout": CONNECT_TIMEOUT, "retry": retry}
    scheme, _, rest = url.partition("://")
    try:
        if _is_cluster(url):
            options |= {"socket_connect_timeout": NODE_TIMEOUT, "socket_timeout": NODE_TIMEOUT}
            return _reads_bytes(RedisCluster.from_url(f"{scheme.removesuffix(_CLUSTER)}://{rest}", **options))
        # One connection, because taking one from a pool and giving it back costs a client a third of the round trip.
        client = Redis.from_url(url, single_connection_client=True, **options)
        pool: Any = client.connection_pool
        pool.make_connection()  # connects to nothing yet, and knows whether it could
        return _reads_bytes(client)
    except (ValueError, TypeError, AttributeError) as error:
        expected = f"redis://, rediss:// or unix://, or redis+cluster:// for a cluster ({error})"
        raise InvalidSetting(setting="redis_url", found=without_password(url), expected=expected) from error


def _reads_bytes(client: Client) -> Client:
    """A slot that was granted in an answer that we cannot read would stay taken."""
    if client.get_encoder().decode_responses:
        raise ValueError("without decode_responses: it turns the answers into texts")
    return client


async def _close(client: Any) -> None:
    await client.aclose()
    # After a command that failed, a cluster's client means to ask for the nodes anew, and then closes none of them.
    if (nodes := getattr(client, "nodes_manager", None)) is not None:
        for known in ("nodes_cache", "startup_nodes"):
            await nodes.aclose(known)


async def _run(client: Client, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
    text, digest = _script(name)
    try:
        return await client.evalsha(digest, len(keys), *keys, *arguments)
    except Exception as error:
        if type(error).__name__ != "NoScriptError":
            raise
        return await client.eval(text, len(keys), *keys, *arguments)


async def _run_all(client: Any, name: str, questions: Sequence[tuple[Sequence[str], Sequence[str | int]]]) -> list[Any]:
    """In one round trip. By text and not by digest: one that the server forgot would fail in the middle."""
    text, _ = _script(name)
    async with client.pipeline(transaction=False) as pipeline:
        for keys, arguments in questions:
            pipeline.eval(text, len(keys), *keys, *arguments)
        answers: list[Any] = await pipeline.execute()
    return answers


@cache
def _script(name: str) -> tuple[str, str]:
    text = resources.files("interlock.locks").joinpath("scripts", f"{name}.lua").read_text("utf-8")
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


@lru_cache(maxsize=1024)
def _escaped(name: str) -> str:
    """A brace in a name would end the hash tag early."""
    return name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _unescaped(name: str) -> str:
    return name.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")


def _escaped_pattern(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\^" else char for char in text)
