"""From the console to a command and back: every error is one line on stderr and the exit code of its kind."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import click

from interlock.cli.options import addressed
from interlock.cli.output import printable
from interlock.cli.root import root
from interlock.errors import InterlockError
from interlock.observe.redact import without_password
from interlock.store.fault import is_forbidden, is_read_only

FAILED = 1


def run() -> None:
    options: dict[str, Any] = {}
    _replace_what_the_caller_closed()
    _never_stumble_over_the_encoding()
    try:
        # Commands answer nothing; only --help, --version and ctx.exit() do: their exit code.
        sys.exit(root(prog_name="interlock", obj=options, standalone_mode=False))
    except BrokenPipeError:
        _leave_the_closed_pipe()
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", FAILED, options)
    except click.UsageError as error:
        _fail(f"{_sentence(error)} see: {_path(error)} --help", error.exit_code, options)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code, options)
    except InterlockError as error:
        _fail(addressed(str(error), options), error.exit_code, options)
    except Exception as error:  # noqa: BLE001  users see one line, whatever it is
        _fail(addressed(_told(error), options), FAILED, options)


def _replace_what_the_caller_closed() -> None:
    """Without a console (`>&-`) the work is done all the same: Python leaves None where a stream was closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  it stays open


def _never_stumble_over_the_encoding() -> None:
    """A console that cannot write a character gets an escape for it, not an error after the work was done."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _leave_the_closed_pipe() -> None:
    """The reader (`| head`) has what it wanted; the flush at exit must not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILED)


def _fail(text: str, exit_code: int, options: dict[str, Any]) -> None:
    if options.get("debug"):
        click.echo(without_password(traceback.format_exc()), err=True)
    line = "; ".join(filter(None, (part.strip() for part in text.splitlines())))
    click.echo(f"interlock: {printable(without_password(line))}", err=True)
    sys.exit(exit_code)


def _told(error: Exception) -> str:
    if is_forbidden(error):
        return f"the user of the database lacks a privilege: {error}; each missing grant is named by: interlock doctor"
    if is_read_only(error):
        return f"the database takes no writes: {error}; name all hosts with target_session_attrs=read-write"
    return f"{type(error).__name__}: {error}"


def _sentence(error: click.UsageError) -> str:
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:] + ("" if text.endswith("?") else ";")


def _path(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx else "interlock"
