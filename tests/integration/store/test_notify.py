from __future__ import annotations

import asyncio
import sys
import textwrap
import time

import pytest

from interlock.dispatch.results import Endings
from interlock.observe.context import ExecutionContext, bound, current
from interlock.observe.events.store import NoticeFailed
from interlock.store import notify as notify_module
from interlock.store.notify import Notifier, channel_of, notify_in
from tests.harness.ports import free_port
from tests.harness.waiting import NeverHappenedError, eventually


class Sent(Notifier):
    """Counts the statements."""

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.rounds: list[list[str]] = []

    async def _send(self, payloads) -> None:
        self.rounds.append(list(payloads))
        await super()._send(payloads)


class Suppressing(Sent):
    """What must not be written: whatever comes soon after another notice is dropped."""

    def notify(self, payload: str) -> None:
        if time.monotonic() - self._sent_at >= self._window:
            super().notify(payload)


@pytest.fixture
async def heard(database, connect):
    """The payloads that another connection hears."""
    payloads: list[str] = []
    conn = await connect(database)
    await conn.add_listener(channel_of("interlock"), lambda *notice: payloads.append(notice[3]))
    return payloads


@pytest.fixture
def notifier(opened, database, closing):
    def make(kind: type[Notifier] = Sent, **options) -> Notifier:
        made = kind(opened(database), emit=[].append, **options)
        closing.push_async_callback(made.close)
        return made

    return make


async def second_right_after_the_first(sender: Sent) -> None:
    sender.notify("work:1")
    await eventually(lambda: sender.rounds)
    await asyncio.sleep(0.001)
    sender.notify("work:2")


async def test_a_notice_right_after_another_is_still_sent(notifier, heard):
    await second_right_after_the_first(notifier(window=2))
    await eventually(lambda: heard == ["work:1", "work:2"])


async def test_control_a_notifier_that_suppresses_within_the_window_loses_it(notifier, heard):
    await second_right_after_the_first(notifier(Suppressing, window=2))
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: "work:2" in heard, 1)
    assert heard == ["work:1"]


async def test_a_burst_takes_few_statements_and_arrives_whole(notifier, heard):
    sender = notifier(window=0.5)
    for number in range(1000):
        sender.notify(f"work:{number % 10}")
        if number % 100 == 0:
            await asyncio.sleep(0)
    await sender.close()
    assert len(sender.rounds) <= 3
    await eventually(lambda: set(heard) == {f"work:{n}" for n in range(10)})


async def test_a_statement_carries_its_notice_when_none_went_out_lately_and_else_it_waits(notifier, heard):
    sender = notifier(window=60)
    assert sender.carry() is not None
    assert sender.carry() is None
    sender.notify("work:")
    await asyncio.sleep(0.05)
    assert sender.rounds == []


async def test_a_carried_notice_tells_of_what_waited_when_its_statement_began(notifier, heard):
    sender = notifier(window=60)
    sender.carry()
    sender.notify("work:")  # committed before the next statement begins
    await asyncio.sleep(0)
    sender._sent_at -= 40  # so much later
    since = sender.carry()
    sender.carried("work:", since)
    await sender.close()
    assert sender.rounds == []


async def row_committed_behind_a_carried_notice(sender: Notifier) -> None:
    """Its notice went out before the row could be seen, and its answer arrives after the row is committed."""
    since = sender.carry()
    sender.notify("work:")
    sender.carried("work:", since)
    await sender.close()


async def test_a_carried_notice_says_nothing_of_what_was_committed_behind_it(notifier, heard):
    await row_committed_behind_a_carried_notice(notifier())
    await eventually(lambda: heard == ["work:"])


class Forgetful(Sent):
    """What must not be written: whoever carried a notice takes it to stand for all that wait by now."""

    def carried(self, payload: str, since: int) -> None:  # noqa: ARG002  the guard that is switched off
        self._waiting.pop(payload, None)


async def test_control_a_carried_notice_that_stands_for_all_that_wait_loses_it(notifier, heard):
    await row_committed_behind_a_carried_notice(notifier(Forgetful))
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: heard, 1)


async def test_closing_sends_what_waits(notifier, heard):
    sender = notifier()
    sender.notify("work:last")
    await sender.close()
    await eventually(lambda: heard == ["work:last"])


async def test_closing_does_not_wait_for_the_end_of_the_window(notifier, heard):
    sender = notifier(window=600)
    sender.carry()
    sender.notify("work:last")
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await sender.close()
    await eventually(lambda: heard == ["work:last"])


async def test_a_notice_that_cannot_be_sent_costs_an_event_and_nothing_else(opened):
    events: list = []
    sender = Notifier(opened(f"postgresql://ada:hush@127.0.0.1:{free_port()}/app"), emit=events.append)
    sender.notify("work:1")
    await sender.close()
    assert [type(event) for event in events] == [NoticeFailed]
    assert "hush" not in str(events[0])


async def test_what_is_said_of_a_lost_notice_does_not_name_the_train_that_sent_the_first(opened):
    named: list = []
    away = opened(f"postgresql://127.0.0.1:{free_port()}/app")
    sender = Notifier(away, emit=lambda _: named.append(current()))
    with bound(ExecutionContext(execution_id=1, train="work")):
        sender.notify("work:1")
    await sender.close()
    assert named == [None]


async def test_what_is_said_while_results_are_waited_for_does_not_name_the_train_that_waited_first(opened):
    named: list = []
    away = opened(f"postgresql://127.0.0.1:{free_port()}/app")
    waits = Endings(away, emit=lambda _: named.append(current()))
    with bound(ExecutionContext(execution_id=1, train="work")), waits.watching(7):
        await eventually(lambda: named, 60, "news of a database that is away")
    await waits.close()
    assert set(named) == {None}


async def test_within_a_transaction_a_notice_arrives_with_the_commit_and_not_with_a_rollback(opened, database, heard):
    door = opened(database)

    async def notify_and_fail() -> None:
        async with door.transaction() as conn:
            await notify_in(conn, door, ["work:never"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await notify_and_fail()
    async with door.transaction() as conn:
        await notify_in(conn, door, ["work:a", "work:b"])
        await asyncio.sleep(0.05)
        assert heard == []
    await eventually(lambda: heard == ["work:a", "work:b"])


async def test_schemas_do_not_hear_each_other(opened, database, heard):
    other, ours = opened(database, schema="other"), opened(database)
    for door in (other, ours):
        async with door.connection() as conn:
            await notify_in(conn, door, [f"work:{door.settings.schema}"])
    await eventually(lambda: heard == ["work:interlock"])


SENDER = """
    import asyncio, sys
    from interlock.store.database import Database
    from interlock.store.notify import Notifier
    from interlock.store.settings import StoreSettings

    async def main():
        door = Database(sys.argv[1], StoreSettings())
        sender = Notifier(door, emit=print)
        sender.notify("work:elsewhere")
        await sender.close()
        await door.close()

    asyncio.run(main())
"""


async def test_a_notice_reaches_another_process(fleet, database, heard):
    process = fleet.command(sys.executable, "-c", textwrap.dedent(SENDER), database)
    await eventually(lambda: heard == ["work:elsewhere"], 60)
    assert await process.wait() == 0


def test_the_longest_schema_name_still_makes_a_channel_name():
    assert len(channel_of("a" * 40)) < 64
    assert notify_module.WINDOW < 0.05
