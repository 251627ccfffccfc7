"""Dead letters resolved by people: queued again, or closed with a note; one, many, or all that fit a filter."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from interlock.errors import AlreadyResolved, UnknownDeadLetter
from interlock.model.act import Permission
from interlock.model.bounds import checked_id
from interlock.observe.events.work import DeadLetterResolved
from interlock.operate.act import Acting
from interlock.store.dead_letter import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from interlock.model.dead_letter import DeadLetterFilter
    from interlock.operate.act import Act

BATCH = 500
Verb = Literal["requeue", "acknowledge"]
_STATES: Mapping[str, str] = {"requeue": "retried", "acknowledge": "acknowledged"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The dead letters that this command resolved, each with its new entry, and those that others had resolved."""

    entries: dict[int, int | None]
    skipped: tuple[int, ...] = ()


class ResolveCommands(Acting):
    """Of two who resolve the same dead letter at once, one wins and the other gets AlreadyResolved."""

    async def requeue(self, dead_letter_id: int) -> int:
        """Queue the work again from its first attempt; answers the new entry."""
        return (await self._resolve_one("requeue", dead_letter_id)) or 0

    async def acknowledge(self, dead_letter_id: int) -> None:
        """Close it without running anything; its manifest goes on with its schedule."""
        await self._resolve_one("acknowledge", dead_letter_id)

    async def requeue_many(self, wanted: DeadLetterFilter) -> Resolved:
        """Queue again all that fit."""
        return await self._resolve_many("requeue", wanted)

    async def acknowledge_many(self, wanted: DeadLetterFilter) -> Resolved:
        """Close all that fit."""
        return await self._resolve_many("acknowledge", wanted)

    async def _resolve_one(self, verb: Verb, dead_letter_id: int) -> int | None:
        checked_id("dead_letter_id", dead_letter_id)

        async def work(act: Act) -> int | None:
            resolved = await self._resolve(act, verb, [dead_letter_id])
            if dead_letter_id not in resolved:
                await _refuse(act, dead_letter_id)
            return resolved[dead_letter_id]

        return await self._act(Permission.RESOLVE, work)

    async def _resolve_many(self, verb: Verb, wanted: DeadLetterFilter) -> Resolved:
        """In transactions of a bounded size: a backlog of any length stops nobody else."""
        entries: dict[int, int | None] = {}
        after = 0
        while True:
            with _told_what_stays(0 if self._dry_run else len(entries), verb):
                batch = await self._act(Permission.RESOLVE, lambda act: self._resolve_batch(act, verb, wanted, after))  # noqa: B023  awaited before it changes
            entries |= batch.entries
            if batch.last is None:
                skipped = tuple(one for one in wanted.ids or () if one not in entries)
                return Resolved(entries, skipped)
            after = batch.last

    async def _resolve_batch(self, act: Act, verb: Verb, wanted: DeadLetterFilter, after: int) -> _Batch:
        letters = DeadLetters(act.sql)
        if wanted.ids is not None and not after:
            known = await letters.get(act.conn, wanted.ids)
            for missing in (one for one in wanted.ids if one not in known):
                raise UnknownDeadLetter(name=str(missing))
        chosen = await letters.choose(act.conn, wanted, after=after, limit=BATCH)
        last = chosen[-1] if len(chosen) == BATCH else None
        return _Batch(await self._resolve(act, verb, chosen), last)

    async def _resolve(self, act: Act, verb: Verb, ids: Sequence[int]) -> dict[int, int | None]:
        """The entries of those that were open; their audit rows and events go along."""
        letters, actor = DeadLetters(act.sql), act.actor.name
        if verb == "requeue":
            entries: dict[int, int | None] = dict(
                await letters.requeue_if_open(
                    act.conn, ids, actor=actor, note=act.note, policy=self._means.policy, now=act.now
                )
            )
        else:
            closed = await letters.acknowledge_if_open(act.conn, ids, actor=actor, note=act.note, now=act.now)
            entries = dict.fromkeys(closed)
        _record(act, verb, entries)
        return entries


@contextmanager
def _told_what_stays(done: int, verb: Verb) -> Iterator[None]:
    """Batches before the one that failed are committed; whoever sees the error has to know."""
    try:
        yield
    except BaseException as error:
        if done:
            error.add_note(f"{done} dead letters were {verb}d before it stopped, and stay so; begin again for the rest")
        raise


@dataclass(frozen=True, slots=True)
class _Batch:
    entries: dict[int, int | None]
    last: int | None


def _record(act: Act, verb: Verb, entries: Mapping[int, int | None]) -> None:
    state = _STATES[verb]
    for letter, entry in entries.items():
        after = {"state": state} | ({} if entry is None else {"entry_id": str(entry)})
        act.changed(verb, "dead_letter", letter, before={"state": "awaiting_intervention"}, after=after)
        act.events.append(DeadLetterResolved(dead_letter_id=letter, state=state, actor=act.actor.name, entry_id=entry))
    if entries:
        act.wake("work", "manifest")


async def _refuse(act: Act, dead_letter_id: int) -> None:
    found = (await DeadLetters(act.sql).get(act.conn, [dead_letter_id])).get(dead_letter_id)
    if found is None:
        raise UnknownDeadLetter(name=str(dead_letter_id))
    raise AlreadyResolved(dead_letter_id=dead_letter_id, state=found.state.value, resolved_by=found.resolved_by)
