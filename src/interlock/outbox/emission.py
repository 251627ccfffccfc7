"""Emission: what was claimed is delivered by some runners per emitter, outside any transaction.

A unit of work is a chain: the messages of one key in their order, or a single one; a batch emitter takes many at once.
Before each delivery the claim must still cover the emitter's time, else it is renewed, and what cannot be renewed is
not emitted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from interlock import failpoints
from interlock.locks.deadline import clock
from interlock.model.message import Settling
from interlock.outbox.call import call_batch, call_one
from interlock.outbox.outcome import INTERRUPTED, settlement_of
from interlock.runtime.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from interlock.model.message import Settlement
    from interlock.outbox.emitter import Emitter
    from interlock.outbox.held import Held

    Chain = Sequence[Held]


STOPPING = "the worker stops"
GAP = "an earlier message of the key was not delivered"


class Emission:
    """The messages of one emitter in this worker's hands that are not delivered yet."""

    def __init__(
        self,
        emitter: Emitter,
        *,
        settle: Callable[[Held, Settlement], None],
        give_back: Callable[[Sequence[Held], str], Awaitable[None]],
        renew: Callable[[Sequence[Held]], Awaitable[None]],
        refuses: Callable[[str], bool],
    ) -> None:
        self.emitter = emitter
        self._settle, self._give_back, self._renew, self._refuses = settle, give_back, renew, refuses
        self._threads = self._new_threads()
        self._chains: deque[Chain] = deque()
        self._waiting = 0
        self._runners: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def in_hand(self) -> int:
        """How many messages wait or are being delivered."""
        return self._waiting

    @property
    def stopped(self) -> bool:
        return self._stopped

    def submit(self, chains: Sequence[Chain]) -> None:
        self._chains.extend(chains)
        self._waiting += sum(map(len, chains))
        # One that has come to its end is among them until its callback is called; it takes up nothing any more.
        running = sum(not runner.done() for runner in self._runners)
        for _ in range(min(self.emitter.concurrency - running, len(chains))):
            runner = asyncio.create_task(self._run(), name=f"emit {self.emitter.pattern}")
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    def stop(self) -> None:
        """Begin no further delivery; whoever comes to the next gives back what waits."""
        self._stopped = True

    async def give_up(self) -> None:
        """Give back what waits."""
        rest = [held for chain in self._chains for held in chain]
        self._chains.clear()
        await self._drop(rest, STOPPING)

    async def idle(self) -> None:
        while self._runners:
            await asyncio.wait(self._runners)

    async def cancel(self) -> None:
        """Cut off what is being delivered; what waits is given back."""
        for runner in self._runners:
            runner.cancel()
        await self.idle()
        await self.give_up()

    def rest(self) -> None:
        """End the threads that wait for work; the next delivery starts others."""
        self._threads.close()
        self._threads = self._new_threads()

    async def close(self) -> None:
        """Let go of all that is kept between deliveries."""
        self._threads.close()
        if (close := getattr(self.emitter.function, "aclose", None)) is not None:
            await close()

    def _new_threads(self) -> Threads:
        """As many again as deliver at once, for those whose function overran its time and goes on."""
        return Threads(2 * self.emitter.concurrency, name="interlock-emit")

    async def _run(self) -> None:
        while self._chains:
            if self._stopped:
                await self.give_up()
                return
            size = self.emitter.batch
            begun = deque(self._chains.popleft()) if size is None else self._next_batch(size)
            try:
                await (self._deliver(begun) if size is None else self._deliver_batch(begun, size))
            except asyncio.CancelledError:
                self._chains.appendleft(list(begun))
                raise

    async def _deliver(self, chain: deque[Held]) -> None:
        while chain:
            if (reason := await self._obstacle(chain[0], chain)) is not None:
                await self._drop(_taken(chain), reason)
                return
            settlement = await self._emit(chain.popleft())
            if self._ends_chain(settlement):
                await self._drop(_taken(chain), GAP)

    def _ends_chain(self, settlement: Settlement) -> bool:
        if settlement.outcome is Settling.DEAD:
            return self.emitter.on_dead == "hold"
        return settlement.outcome is not Settling.DELIVERED

    async def _emit(self, held: Held) -> Settlement:
        held.started = clock()
        try:
            answer = await call_one(self.emitter, held.claimed, self._threads)
            await failpoints.reach("outbox.after_emit")
        except asyncio.CancelledError:
            self._end(held, settlement_of(held, self.emitter, INTERRUPTED))
            raise
        settlement = settlement_of(held, self.emitter, answer)
        self._end(held, settlement)
        return settlement

    def _next_batch(self, size: int) -> deque[Held]:
        """Whole chains, as many as fit: the rest of one that is cut would be another runner's, at the same time."""
        batch = deque(self._chains.popleft())
        while self._chains and len(batch) + len(self._chains[0]) <= size:
            batch += self._chains.popleft()
        return batch

    async def _deliver_batch(self, waiting: deque[Held], size: int) -> None:
        """More than one batch is of one key: then the next one waits for how this one ended."""
        while waiting:
            batch = list(islice(waiting, size))
            for held in batch:
                if (reason := await self._obstacle(held, waiting)) is not None:
                    await self._drop(_taken(waiting), reason)
                    return
            for _ in batch:
                waiting.popleft()
            if not await self._emit_batch(batch):
                await self._drop(_taken(waiting), GAP)

    async def _emit_batch(self, batch: Sequence[Held]) -> bool:
        """Whether every key goes on."""
        now = clock()
        for held in batch:
            held.started = now
        try:
            answers = await call_batch(self.emitter, [held.claimed for held in batch], self._threads)
            await failpoints.reach("outbox.after_emit")
        except asyncio.CancelledError:
            self._end_batch(batch, [settlement_of(held, self.emitter, INTERRUPTED) for held in batch])
            raise
        settlements = [settlement_of(held, self.emitter, answer) for held, answer in zip(batch, answers, strict=True)]
        return self._end_batch(batch, settlements)

    def _end_batch(self, batch: Sequence[Held], settlements: Sequence[Settlement]) -> bool:
        """Of a key only what was delivered without a gap counts: the rest is sent again, in order, behind the gap."""
        broken: set[str] = set()
        for held, settlement in zip(batch, settlements, strict=True):
            key = held.claimed.key
            if key in broken:
                again = settlement_of(held, self.emitter, INTERRUPTED)
                self._end(held, again._replace(error_message=GAP))
                continue
            if key is not None and self._ends_chain(settlement):
                broken.add(key)
            self._end(held, settlement)
        return not broken

    async def _obstacle(self, held: Held, rest: Sequence[Held]) -> str | None:
        """Why this message must not be emitted now."""
        if self._stopped:
            return STOPPING
        if self._refuses(held.claimed.topic) and not held.claimed.probe:
            return "its topic fails"
        if held.lane_lost():
            return "its lane is lost"
        if not held.covers(self.emitter.seconds):
            await self._renew([*rest, *(each for chain in self._chains for each in chain)])
            if not held.covers(self.emitter.seconds):
                return "its claim does not last long enough"
        return "it came too late in hand" if held.is_too_late() else None

    async def _drop(self, rest: Sequence[Held], reason: str) -> None:
        self._waiting -= len(rest)
        if rest:
            await self._give_back(rest, reason)

    def _end(self, held: Held, settlement: Settlement) -> None:
        self._waiting -= 1
        self._settle(held, settlement)


def _taken(chain: deque[Held]) -> list[Held]:
    """All that is left of it, which is in the caller's hands from now."""
    rest = list(chain)
    chain.clear()
    return rest
