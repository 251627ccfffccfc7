"""The drain: claim before emit, emit outside any transaction, settle only what is still ours.

The row is authoritative: whoever's token it carries may deliver it, until `available_at`. A worker that dies leaves
nothing to clean up, because its messages become due by themselves. A message whose next crash would be its last is
delivered alone, with nothing else in this process's hands, so that only the guilty one is declared dead.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import uuid4

from interlock.locks.deadline import clock
from interlock.model.lifecycle import OutboxState
from interlock.model.message import LEAST_SHARE, Answer, ClaimRequest, Settling
from interlock.observe.events.outbox import MessagesClaimed, MessagesReleased, SettlingFailed
from interlock.outbox.breaker import Breakers
from interlock.outbox.emission import STOPPING, Emission
from interlock.outbox.held import Held
from interlock.outbox.report import Report
from interlock.outbox.routes import Routes
from interlock.outbox.settle import Settler
from interlock.runtime.loop import IMMEDIATELY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from interlock.locks.lease import Lease
    from interlock.model.message import Claimed, Claims, Settlement
    from interlock.observe.bus import Emit
    from interlock.outbox.emitter import Emitter
    from interlock.outbox.lanes import Lanes
    from interlock.outbox.settings import OutboxSettings
    from interlock.outbox.store import MessageStore

ISOLATION_INTERVAL = 1.0  # seconds between looks for messages that must be delivered alone
AGAIN = timedelta(milliseconds=500)  # what is given back is not due at once: who gave it back would only take it again
NOT_ALONE = "it must be delivered alone, and others are in hand"


@dataclass(frozen=True, kw_only=True)
class Drained:
    """What one step did."""

    claimed: int = 0
    settled: Counter[str] = field(default_factory=Counter)


class Drain:
    name = "outbox"

    def __init__(
        self,
        store: MessageStore,
        emitters: Sequence[Emitter],
        settings: OutboxSettings,
        *,
        emit: Emit,
        server: Callable[[], UUID | None] = lambda: None,
        host: str | None = None,
        lanes: Lanes | None = None,
        breakers: Breakers | None = None,
    ) -> None:
        self._store, self._settings, self._emit = store, settings, emit
        self._server, self._host, self._lanes = server, host, lanes
        self._breakers = breakers or Breakers(store, emit=emit)
        self._report = Report(emit)
        self._settler = Settler(store, self._settled, emit=emit)
        self._routes = Routes(emitters, settings)
        self._emissions = {id(emitter): self._emission(emitter) for emitter in emitters}
        self._in_hand = 0
        self._room = asyncio.Event()
        self._looked_for_suspects = 0.0
        self._counts: Counter[str] = Counter()
        self._short_of_room = self._may_be_more = False
        self.wake: Callable[[], None] = lambda: None

    @property
    def in_hand(self) -> int:
        """How many messages are claimed and not settled."""
        return self._in_hand

    async def step(self) -> Drained:
        """Claim one batch, deliver it and settle it; answers what happened."""
        self._counts = Counter()
        await self._breakers.write()
        claimed = await self._claim()
        await self._quiet()
        claimed += await self._deliver_suspect()
        for emission in self._emissions.values():
            emission.rest()
        return Drained(claimed=claimed, settled=self._counts)

    async def tick(self) -> timedelta:
        """Claim what there is room for and let it be delivered; answers when to look again."""
        await self._until_room()
        await self._breakers.write()
        self._may_be_more = False
        await self._claim()
        full = self._may_be_more or not (self._lanes is None or self._lanes.has_seen_all)
        waited = clock() - self._looked_for_suspects
        if waited > ISOLATION_INTERVAL:
            self._looked_for_suspects = clock()
            full = bool(await self._deliver_suspect()) or full
        if full:
            return IMMEDIATELY
        longest = self._settings.outbox_polling_interval
        if waited <= ISOLATION_INTERVAL:
            longest = min(longest, timedelta(seconds=ISOLATION_INTERVAL - waited + 0.001))
        return await self._until_next(longest)

    def stop(self) -> None:
        """Begin no further delivery."""
        for emission in self._emissions.values():
            emission.stop()

    async def finish(self) -> None:
        """What waits is given back, what is being delivered comes to its end, and all is written."""
        self.stop()
        for emission in self._emissions.values():
            await emission.give_up()
        await self._quiet()
        await self._breakers.write()

    async def close(self) -> None:
        """Cut off what is left; what was cut off is due again at once."""
        self.stop()
        for emission in self._emissions.values():
            await emission.cancel()
        await self._settler.flush()
        if self._lanes is not None:
            await self._lanes.close()

    async def abandon(self) -> None:
        """Hang up: claims that are still held run out."""
        await self._settler.close()
        await self._store.close()
        for emission in self._emissions.values():
            await emission.close()

    async def _claim(self, *, isolated: bool = False) -> int:
        if self._lanes is None:
            return await self._take(self._request(isolated=isolated))
        await self._lanes.look()
        buckets = self._lanes.buckets()
        if not buckets:
            return 0
        request = self._request(isolated=isolated)._replace(
            buckets=buckets,
            blocked_keys=self._lanes.blocked_keys(),
            depth=self._lanes.depth,
            stretch=self._stretch(),
        )
        return await self._take(request)

    def _stretch(self) -> int:
        """So many of a key at once that there are twice as many chains as are delivered side by side."""
        return max(self._settings.outbox_batch_size // (2 * self._settings.outbox_concurrency), 1)

    def _request(self, *, isolated: bool) -> ClaimRequest:
        size = self._settings.outbox_batch_size
        rooms = [isolated or emission.in_hand < size for emission in self._emissions.values()]
        self._short_of_room = not all(rooms)
        return ClaimRequest(
            roads=self._routes.roads(rooms),
            limit=1 if isolated else size,
            lease=self._settings.outbox_lease,
            token=uuid4(),
            server=self._server(),
            host=self._host,
            topics=self._routes.topics,
            partitions=self._settings.outbox_partitions or None,
            isolated=isolated,
        )

    async def _take(self, request: ClaimRequest) -> int:
        asked = clock()
        claims = await self._store.claim(request)
        if self._lanes is not None and request.buckets is not None and not request.isolated:
            self._lanes.remember(claims.blocked)
            self._lanes.sound(len(claims.messages), request.limit)
        if not request.isolated:
            self._may_be_more = _may_be_more(claims.messages, request)
        held = [self._hold(each, request, asked) for each in self._alive(claims)]
        self._in_hand += len(held)
        if request.isolated and held and self._in_hand > len(held):
            # Not held meanwhile: if one of the others ended this process, it would be charged once too often.
            await self._give_back(held, NOT_ALONE)
            await self._quiet()
        elif held:
            for emitter, chains in self._routes.chains(held, ordered=request.buckets is not None):
                self._emissions[id(emitter)].submit(chains)
            await asyncio.sleep(0)  # deliveries begin now, before this worker asks for what comes next
        if claims.messages:
            took = timedelta(seconds=clock() - asked)
            self._emit(MessagesClaimed(count=len(claims.messages), took=took))
        return len(claims.messages)

    def _alive(self, claims: Claims) -> list[Claimed]:
        """Those to deliver; the others were ended by the claim itself."""
        for claimed in claims.messages:
            if claimed.state is not OutboxState.PENDING:
                self._counts[claimed.state] += 1
                self._report.ended(claimed)
            elif not claimed.probe:
                self._breakers.forget(claimed.topic)
        return [each for each in claims.messages if each.state is OutboxState.PENDING]

    def _hold(self, claimed: Claimed, request: ClaimRequest, asked: float) -> Held:
        lane: Lease | None = None
        if self._lanes is not None and request.buckets is not None and claimed.bucket is not None:
            lane = self._lanes.enter(claimed.bucket, str(claimed.key))
        return Held(claimed, request.token, asked, request.lease, lane)

    async def _deliver_suspect(self) -> int:
        """Messages whose next crash would be the last go one by one, with nothing else in hand."""
        delivered = 0
        while not self._stopped() and await self._claim(isolated=True):
            delivered += 1
            await self._quiet()
        return delivered

    def _stopped(self) -> bool:
        return any(emission.stopped for emission in self._emissions.values())

    async def _quiet(self) -> None:
        """Until nothing is in hand."""
        for emission in self._emissions.values():
            await emission.idle()
        await self._settler.flush()

    async def _until_room(self) -> None:
        """At most two batches per emitter are in hand: one that is being delivered, and one to go on with."""
        while all(each.in_hand >= self._settings.outbox_batch_size for each in self._emissions.values()):
            self._room.clear()
            await self._room.wait()

    async def _until_next(self, longest: timedelta) -> timedelta:
        wait = await self._store.next_due(self._routes.patterns)
        waits = [longest] + ([] if wait is None else [max(wait, timedelta(milliseconds=1))])
        if self._lanes is not None:
            waits.append(self._lanes.wait())
        return min(waits)

    def _emission(self, emitter: Emitter) -> Emission:
        return Emission(
            emitter,
            settle=self._settle,
            give_back=self._give_back,
            renew=self._renew,
            refuses=self._breakers.refuses,
        )

    def _settle(self, held: Held, settlement: Settlement) -> None:
        self._breakers.count(held, settlement)
        if self._breakers.changed:
            self.wake()
        self._settler.add(held, settlement)

    def _settled(self, held: Held, settlement: Settlement, answer: Answer) -> None:
        self._leave(held)
        applied = answer is Answer.APPLIED
        self._counts[settlement.outcome if applied else answer] += 1
        if applied and settlement.outcome in (Settling.RETRY, Settling.SNOOZE) and self._lanes is not None:
            self._lanes.block(held.claimed.key, settlement.delay)
        self._report.settled(held, settlement, answer)

    def _leave(self, held: Held) -> None:
        self._in_hand -= 1
        self._room.set()
        freed = False
        if self._lanes is not None and held.lane is not None:
            freed = self._lanes.leave(held.lane, str(held.claimed.key))
        if freed or self._short_of_room:
            self.wake()

    async def _give_back(self, rest: Sequence[Held], reason: str) -> None:
        """What cannot be given back becomes due by itself when its claim runs out."""
        try:
            for ordered, group in groupby(rest, key=lambda held: held.lane is not None):
                delay = IMMEDIATELY if ordered or reason in (STOPPING, NOT_ALONE) else AGAIN
                await self._store.release([held.reference for held in group], delay)
        except Exception as error:  # noqa: BLE001  a runner outlives the database's absence
            self._emit(SettlingFailed(error=error, waiting=len(rest)))
        else:
            self._emit(MessagesReleased(count=len(rest), reason=reason))
        finally:
            for held in rest:
                self._leave(held)

    async def _renew(self, held: Sequence[Held]) -> None:
        """What is not renewed, for whatever reason, is not emitted."""
        asked, lease = clock(), self._settings.outbox_lease
        try:
            renewed = await self._store.renew([each.reference for each in held], lease)
        except Exception as error:  # noqa: BLE001  as above
            self._emit(SettlingFailed(error=error, waiting=len(held)))
            return
        for each in held:
            if each.id in renewed:
                each.renewed(asked, lease)


def _may_be_more(claimed: Sequence[Claimed], request: ClaimRequest) -> bool:
    """Whether this was a whole batch, or all that a topic gets of one, or ended what stood in front of others."""
    ended = any(each.state is not OutboxState.PENDING for each in claimed)
    topics = Counter(each.topic for each in claimed) if request.buckets is None else Counter()
    return ended or len(claimed) >= request.limit or max(topics.values(), default=0) >= LEAST_SHARE
