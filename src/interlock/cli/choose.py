"""Which app a command is about."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.app import Interlock
from interlock.errors import AppNotFound, InvalidSetting
from interlock.settings import PROJECT_TABLE, misspelt_variables, override, project_table

if TYPE_CHECKING:
    from collections.abc import Mapping

FLAGS = ("dsn", "schema")


def choose_app(options: Mapping[str, Any], **flags: Any) -> Interlock:
    """The app named by -a, INTERLOCK_APP or [tool.interlock] app, else one without trains; flags win over its own."""
    _point_out_misspelt_variables()
    name = options.get("app") or _named_by_project()
    app = Interlock() if name is None else load_app(name)
    said = {flag: options[flag] for flag in FLAGS if flag in options} | flags
    app.settings = override(app.settings, {flag: value for flag, value in said.items() if value is not None})
    return app


@cache
def _point_out_misspelt_variables() -> None:
    """Once per process, also when a command chooses its app twice."""
    for misspelt, meant in misspelt_variables(os.environ):
        click.echo(f"interlock: {misspelt} is no setting; did you mean {meant}?", err=True)


def load_app(name: str) -> Interlock:
    """`module:attribute`, with the current folder importable."""
    module_name, colon, attribute = name.partition(":")
    if not module_name or not colon or not attribute:
        raise AppNotFound(found=name, problem="it does not name a module and an attribute")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    found = getattr(_module(name, module_name), attribute, None)
    if found is None:
        raise AppNotFound(found=name, problem=f"the module has no {attribute!r}")
    if not isinstance(found, Interlock):
        raise AppNotFound(found=name, problem=f"it is of type {type(found).__name__}, not an Interlock app")
    return found


def _module(name: str, module_name: str) -> object:
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _unfit(name, error) from error
        advice = "run it in the folder that holds the module, or install its package"
        raise AppNotFound(found=name, problem=f"there is no module {error.name!r} here", advice=advice) from error
    except (Exception, SystemExit) as error:
        raise _unfit(name, error) from error


def _unfit(name: str, error: BaseException) -> AppNotFound:
    problem = f"importing it raised {type(error).__name__}: {error}"
    return AppNotFound(found=name, problem=problem, advice="mend the module; --debug shows the traceback")


def _named_by_project() -> str | None:
    name = project_table(Path.cwd()).get("app")
    if name is not None and not isinstance(name, str):
        raise InvalidSetting(
            setting="app", found=name, expected="module:attribute", origin=f"pyproject.toml {PROJECT_TABLE}"
        )
    return name
