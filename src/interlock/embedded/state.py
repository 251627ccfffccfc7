"""What a server folder remembers between starts: the port, and the password that nobody else may read."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

USER = DATABASE = "interlock"


@dataclass(frozen=True)
class State:
    password: str = field(repr=False)
    port: int = 0

    @classmethod
    def fresh(cls) -> State:
        return cls(password=secrets.token_urlsafe(24))

    @classmethod
    def read(cls, path: Path) -> State | None:
        """What was remembered, or nothing when the file is missing or damaged."""
        try:
            found = json.loads(path.read_bytes())
            return cls(password=str(found["password"]), port=int(found["port"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(draft, json.dumps(asdict(self)))
        draft.replace(path)

    def on_port(self, port: int) -> State:
        return replace(self, port=port)

    @property
    def dsn(self) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"


def write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
