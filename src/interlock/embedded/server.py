"""A private PostgreSQL that several processes share."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from interlock.embedded import ports, usage, watchdog
from interlock.embedded.binaries import OLDEST_MAJOR, find_binaries, within_reach
from interlock.embedded.cluster import major_of, make_cluster
from interlock.embedded.failures import explained
from interlock.embedded.folder import ServerFolder
from interlock.embedded.home import default_folder
from interlock.embedded.launch import becomes_ready, launch
from interlock.embedded.state import State
from interlock.errors import FolderTaken, InterlockError, PortTaken, WrongBinaries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from interlock.embedded.binaries import Binaries
    from interlock.embedded.usage import Usage

PORT_ATTEMPTS = 5


class EmbeddedServer:
    """The server of one folder: the first of its users starts it, and it stops soon after the last one left or died.

    `options` are settings of postgresql.conf; those of the process that starts the server count. Calls block.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
        binaries: Binaries | None = None,
    ) -> None:
        self._folder = ServerFolder(Path(os.path.realpath(folder or default_folder())))
        self._port, self._options, self._binaries = port, dict(options or {}), binaries
        self._use: Usage | None = None

    @property
    def folder(self) -> Path:
        return self._folder.path

    def start(self) -> str:
        """Be a user of the server, which starts if it does not run yet; answers its DSN."""
        with usage.mutex, explained(self.folder):
            self._folder.claim()
            use = usage.usage_of(self._folder)
            try:
                state = self._join(use)
                if self._use is not use:
                    self._use, use.count = use, use.count + 1
            finally:
                usage.close_unused()
        return state.dsn

    def stop(self) -> None:
        """Use the server no longer."""
        with usage.mutex:
            use, self._use = self._use, None
            if use is not None and usage.is_held(use):
                self._leave(use)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _join(self, use: Usage) -> State:
        with use.admin():
            use.share()
            if not becomes_ready(self._folder, use):
                self._begin(use)
            state = self._on_actual_port()
        if self._port not in (None, state.port):
            raise FolderTaken(folder=str(self.folder), problem=f"its server already runs on port {state.port}")
        return state

    def _leave(self, use: Usage) -> None:
        if use.count == 1 and not use.is_watched():
            # Both the watchdog and who watched over it were killed: nobody else would stop the server.
            with suppress(InterlockError, OSError):
                self._join(use)
        use.count -= 1
        usage.close_unused()

    def _begin(self, use: Usage) -> None:
        """Start the server, or watch again over one whose watchdog was killed."""
        self._folder.remove_drafts()
        major = major_of(self._folder)
        binaries = self._choose_binaries(major)
        state = self._remembered() if major else make_cluster(self._folder, binaries, durable=self._durable())
        self._folder.make_socket_folder()
        for _ in range(PORT_ATTEMPTS):
            state = state.on_port(self._choose_port(state))
            state.write(self._folder.state)
            try:
                if launch(self._folder, binaries, state.port, self._options) or becomes_ready(self._folder, use):
                    return
            except PortTaken:
                if self._port is not None:
                    raise
        raise PortTaken(port=state.port)

    def _remembered(self) -> State:
        state = State.read(self._folder.state)
        if state is None:
            raise FolderTaken(folder=str(self.folder), problem="it holds a database, but not the password to it")
        return state

    def _on_actual_port(self) -> State:
        """A starter that was killed may have left a watchdog behind, which then chose first."""
        state, actual = self._remembered(), watchdog.postmaster_port(str(self._folder.data))
        if actual and actual != state.port:
            state = state.on_port(actual)
            state.write(self._folder.state)
        return state

    def _choose_binaries(self, major: int | None) -> Binaries:
        runner = self._folder.runner()
        if self._binaries is None:
            return find_binaries(major, runner=runner)
        chosen = self._binaries
        if chosen.major < OLDEST_MAJOR or major not in (None, chosen.major):
            needed = str(major) if major else f"{OLDEST_MAJOR} or newer"
            raise WrongBinaries(folder=str(self.folder), found=chosen.major, needed=needed)
        return within_reach(chosen, runner)

    def _choose_port(self, state: State) -> int:
        data = str(self._folder.data)
        if watchdog.live_postmaster(data) and (running := watchdog.postmaster_port(data)):
            return running
        if self._port is not None:
            if not ports.is_free(self._port):
                raise PortTaken(port=self._port)
            return self._port
        return state.port if state.port and ports.is_free(state.port) else ports.any_free()

    def _durable(self) -> bool:
        return self._options.get("fsync", "on") != "off"
