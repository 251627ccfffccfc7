"""Lock slots in Redis or Valkey: one script per verb, so that every verb is atomic and one round trip.

A slot is the key `interlock:<namespace>:{<name>}:slot:<n>`; the braces are the hash tag that keeps the slots of a name
on one node of a cluster, which the scheme `redis+cluster://` names. Durability is the server's: after a restart that
forgot the keys, every holder is told that its lease is lost, and fences go on growing because they follow the server's
clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha1
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from interlock.errors import InvalidSetting, LockServiceUnavailable
from interlock.locks.per_loop import PerLoop
from interlock.model.lease import Grant, Holder, Peers, Refusal
from interlock.model.packages import require
from interlock.observe.redact import without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis, RedisCluster

    Client: TypeAlias = Redis | RedisCluster

    from interlock.model.lease import Held, SlotRequest

CONNECT_TIMEOUT = 3.0
_REFUSED = 6  # fields of an answer that grants nothing
_CLUSTER = "+cluster"


class RedisLocks:
    def __init__(self, url: str, namespace: str) -> None:
        require("redis", needed_by="the lock backend 'redis'")
        self._url, self._prefix = url, f"interlock:{_escaped(namespace)}:"
        self._clients: PerLoop[Client] = PerLoop(lambda: _client(url), _close)
        self.where = without_password(url)
        self.answering = _Answering(self.where)

    async def acquire(self, request: SlotRequest) -> Grant | Refusal:
        with self.answering:
            found = await _run(self._clients.get(), "acquire", (self._base(request.name),), (_question(request),))
        return _answer(found.split(b"\0"), request.ttl)

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
        return _holder(name, slot, found) if found else None

    async def line(self) -> RedisLine:
        return RedisLine(self, _client(self._url))

    async def close(self) -> None:
        await self._clients.close()

    async def _extend(self, client: Client, held: Sequence[Held]) -> dict[UUID, timedelta]:
        # By text and not by digest: a digest that the server forgot would fail in the middle of a pipeline.
        text, _ = _script("extend")
        async with client.pipeline(transaction=False) as pipeline:
            for each in held:
                base = self._base(each.name)
                keys = (f"{base}:slot:{each.slot}", f"{base}:open")
                pipeline.eval(text, len(keys), *keys, each.token.hex, str(_milliseconds(each.ttl)), str(each.slot))
            answers = await pipeline.execute()
        return {each.token: each.ttl for each, kept in zip(held, answers, strict=True) if kept}

    async def _release(self, client: Client, name: str, token: UUID, at_least: timedelta) -> bool:
        return bool(await _run(client, "release", (self._base(name),), (token.hex, _milliseconds(at_least))))

    async def _holder(self, client: Client, key: str) -> Holder | None:
        name, _, slot = key.removeprefix(self._prefix).rpartition(":slot:")
        found = await _run(client, "holder", (key,), ())
        return _holder(_unescaped(name[1:-1]), int(slot), found) if found else None

    def _base(self, name: str) -> str:
        return f"{self._prefix}{{{_escaped(name)}}}"


class _Answering:
    """Whatever goes wrong between us and the server is one error to those who want a lock."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        """A class and not a generator: it is entered twice for each hold."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        from redis.exceptions import MovedError, RedisError  # noqa: PLC0415  the client loads on first use

        if isinstance(error, MovedError):
            reason = "it is a node of a cluster: write redis+cluster:// in redis_url"
            raise LockServiceUnavailable(where=self._where, reason=reason) from error
        if isinstance(error, OSError | TimeoutError | RedisError):
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

    async def close(self) -> None:
        await _close(self._client)


def _client(url: str) -> Client:
    from redis.asyncio import Redis, RedisCluster  # noqa: PLC0415  the client loads on first use
    from redis.asyncio.retry import Retry  # noqa: PLC0415  see above
    from redis.backoff import NoBackoff  # noqa: PLC0415  see above

    # A command that was sent and not answered may have been carried out: trying it again is for those who know.
    options: dict[str, Any] = {"socket_connect_timeout": CONNECT_TIMEOUT, "retry": Retry(NoBackoff(), 0)}
    scheme, _, rest = url.partition("://")
    try:
        if scheme.endswith(_CLUSTER):
            return RedisCluster.from_url(f"{scheme.removesuffix(_CLUSTER)}://{rest}", **options)
        # One connection, because taking one from a pool and giving it back costs a client a third of the round trip.
        return Redis.from_url(url, single_connection_client=True, **options)
    except ValueError as error:
        expected = "redis://, rediss:// or unix://, or redis+cluster:// for a cluster"
        raise InvalidSetting(setting="redis_url", found=without_password(url), expected=expected) from error


async def _close(client: Client) -> None:
    await client.aclose()


async def _run(client: Client, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
    text, digest = _script(name)
    try:
        return await client.evalsha(digest, len(keys), *keys, *arguments)
    except Exception as error:
        if type(error).__name__ != "NoScriptError":
            raise
        return await client.eval(text, len(keys), *keys, *arguments)


@cache
def _script(name: str) -> tuple[str, str]:
    text = resources.files("interlock.locks").joinpath("scripts", f"{name}.lua").read_text("utf-8")
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


def _question(request: SlotRequest) -> str:
    server, owner = "" if request.server is None else request.server.hex, request.owner.replace("\0", "")
    return f"{request.slots} {request.start} {_milliseconds(request.ttl)} {request.token.hex} {server} {owner}"


def _answer(found: Sequence[bytes], ttl: timedelta) -> Grant | Refusal:
    peers = _peers(found) if found[0] != b"0" else Peers()
    if len(found) == _REFUSED:
        soonest = int(found[5])
        return Refusal(peers=peers, free_in=timedelta(milliseconds=soonest) if soonest >= 0 else None)
    slot, fence, seconds, micros, expired = found[_REFUSED:]
    return Grant(
        slot=int(slot),
        fence=int(fence),
        acquired_at=_moment(seconds, micros),
        remaining=ttl,
        expired=expired.decode() or None,
        peers=peers,
    )


def _peers(found: Sequence[bytes]) -> Peers:
    holders, narrowest, narrowest_by, widest, widest_by = found[:5]
    return Peers(
        holders=int(holders),
        narrowest=int(narrowest),
        narrowest_by=narrowest_by.decode(),
        widest=int(widest),
        widest_by=widest_by.decode(),
    )


def _moment(seconds: bytes | str, micros: bytes | str) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(micros))


def _holder(name: str, slot: int, found: Sequence[Any]) -> Holder:
    *fields, left, now = found
    owner, server, slots, fence, ttl, acquired = (field.decode() for field in fields)
    acquired_at, server_now = _moment(*acquired.split(".")), _moment(*now)
    return Holder(
        name=name,
        slot=slot,
        owner=owner,
        slots=int(slots),
        fence=int(fence),
        ttl=timedelta(milliseconds=int(ttl)),
        acquired_at=acquired_at,
        age=server_now - acquired_at,
        expires_in=timedelta(milliseconds=max(left, 0)),
        server=UUID(server) if server else None,
    )


def _milliseconds(duration: timedelta) -> int:
    return max(round(duration.total_seconds() * 1000), 0)


@lru_cache(maxsize=1024)
def _escaped(name: str) -> str:
    """A brace in a name would end the hash tag early."""
    return name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _unescaped(name: str) -> str:
    return name.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")


def _escaped_pattern(text: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\^" else char for char in text)
