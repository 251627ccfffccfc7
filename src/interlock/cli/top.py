from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.client import Amount
from interlock.cli.options import AppCommand, json_option, option
from interlock.cli.top_screen import choose_screen
from interlock.store.fault import is_passing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.app import Interlock
    from interlock.cli.top_screen import Screen


@click.command(name="top", cls=AppCommand)
@option("--seconds", type=Amount(min=0, max=86400 * 365), help="End by itself after so long.")
@option("--interval", type=Amount(min=0.1, max=3600), default=1.0, help="Look every so many seconds.")
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, seconds: float | None, interval: float, as_json: bool) -> None:
    """Watch queue, runs, groups and servers live.

    On a terminal: 1-4 or Tab choose what is listed, space holds the picture, q ends. Elsewhere one line per look, with
    --json one object per line.
    """
    asyncio.run(_watch(options, choose_screen(terminal=_can_draw(), as_json=as_json), interval, seconds))


async def _watch(options: dict[str, Any], screen: Screen, interval: float, seconds: float | None) -> None:
    app, over = choose_app(options), asyncio.Event()
    async with app:
        with _ended_by_signals(over), screen.opened(over.set):
            try:
                async with asyncio.timeout(seconds or None):
                    await _look_again_and_again(app, screen, interval, over, once=seconds == 0)
            except TimeoutError:
                return


async def _look_again_and_again(
    app: Interlock, screen: Screen, interval: float, over: asyncio.Event, *, once: bool
) -> None:
    screen.show(await app.agauges())
    while not once and not over.is_set():
        try:
            await asyncio.wait_for(over.wait(), interval)
        except TimeoutError:
            await _look(app, screen)


async def _look(app: Interlock, screen: Screen) -> None:
    """A database that is away for a while does not end the watch."""
    try:
        found = await app.agauges()
    except Exception as error:
        if not is_passing(error):
            raise
        screen.fail(str(error))
    else:
        screen.show(found)  # outside: a reader that is gone (`| head`) is no database that is away


def _can_draw() -> bool:
    """A dumb terminal, as in an editor, would stay empty: it gets lines."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def _ended_by_signals(over: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
