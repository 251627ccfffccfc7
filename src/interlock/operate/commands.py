"""Every command of Interlock: the one set of verbs for code, the command line, the dashboard and the API."""

from __future__ import annotations

from interlock.operate.cancel import CancelCommands
from interlock.operate.group import GroupCommands
from interlock.operate.prune import PruneCommands
from interlock.operate.rerun import RerunCommands
from interlock.operate.resolve import ResolveCommands
from interlock.operate.switch import SwitchCommands


class Commands(SwitchCommands, CancelCommands, GroupCommands, ResolveCommands, RerunCommands, PruneCommands):
    """Each checks its permission, is one transaction, answers what it changed and leaves its audit row in it.

    `commands.by(actor, note=…)` acts on behalf of somebody; `dry_run=True` answers what would be changed.
    """
