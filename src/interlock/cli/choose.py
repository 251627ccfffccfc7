"""Which app a command is about."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from interlock.app import Interlock
from interlock.errors import AppNotFound


def choose_app(options: dict[str, Any], **overrides: Any) -> Interlock:
    """The app named by -a, INTERLOCK_APP or [tool.interlock] app; else one without trains."""
    name = options.get("app") or _named_by_project()
    if name is not None:
        return load_app(name)
    chosen = {key: options[key] for key in ("dsn", "schema") if options.get(key)}
    return Interlock(**(chosen | {key: value for key, value in overrides.items() if value is not None}))


def load_app(name: str) -> Interlock:
    """`module:attribute`, with the current folder importable."""
    module_name, colon, attribute = name.partition(":")
    if not module_name or not colon or not attribute:
        raise AppNotFound(found=name, problem="it does not name a module and an attribute")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found = _attribute(name, module_name, attribute)
    if not isinstance(found, Interlock):
        raise AppNotFound(found=name, problem=f"it is a {type(found).__name__}, not an Interlock app")
    return found


def _attribute(name: str, module_name: str, attribute: str) -> object:
    try:
        return getattr(import_module(module_name), attribute)
    except AttributeError as error:
        raise AppNotFound(found=name, problem=f"the module has no {attribute!r}") from error
    except Exception as error:
        raise AppNotFound(found=name, problem=f"importing it raised {type(error).__name__}: {error}") from error


def _named_by_project() -> str | None:
    file = Path("pyproject.toml")
    if not file.is_file():
        return None
    try:
        name = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("interlock", {}).get("app")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None  # the settings say what is wrong with the file
    return name if isinstance(name, str) else None
