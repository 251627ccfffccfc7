"""A private PostgreSQL for those who named no other: found, made, started, shared, and stopped when nobody needs it."""

from interlock.embedded.accounts import Account, account
from interlock.embedded.binaries import Binaries, find_binaries
from interlock.embedded.folder import make_folders
from interlock.embedded.home import default_folder, interlock_home
from interlock.embedded.server import EmbeddedServer

__all__ = [
    "Account",
    "Binaries",
    "EmbeddedServer",
    "account",
    "default_folder",
    "find_binaries",
    "interlock_home",
    "make_folders",
]
