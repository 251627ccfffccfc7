from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from interlock.cli import completion
from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, addressed, json_option
from interlock.cli.output import printable, show_json, show_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.operate.blockers import Blocker
    from interlock.operate.explain import Explanation


@click.command(name="explain", cls=AppCommand)
@click.argument("subject", shell_complete=completion.manifests)
@json_option
@click.pass_obj
def command(options: dict[str, Any], *, subject: str, as_json: bool) -> None:
    """Why something does not run, with the evidence and the command that helps.

    SUBJECT is execution:42, entry:42, timer:NAME, message:42 (or message:ID), or the id of a manifest
    (manifest:ID if it has a colon in it).
    """
    explanation = asyncio.run(_explain(options, subject))
    lines = [addressed(blocker.command, options) for blocker in explanation.blockers]
    if as_json:
        show_json(_record(explanation, lines))
        return
    show_text(explanation.standing)
    for blocker, line in zip(explanation.blockers, lines, strict=True):
        found, advice, typed = map(printable, (blocker.evidence, blocker.advice, line))
        click.echo(f"\n{_title(blocker)}\n  found: {found}\n  do:    {advice}\n         {typed}")
    if not explanation.blockers:
        click.echo("nothing blocks it")


async def _explain(options: dict[str, Any], subject: str) -> Explanation:
    """Without the check of the schema that other commands make first: a wrong version is an answer here."""
    app = choose_app(options)
    try:
        return await app.aexplain(subject)
    finally:
        await app.aclose()


def _title(blocker: Blocker) -> str:
    if "count" not in blocker.details:
        return str(blocker.code)
    return f"{blocker.code}({blocker.details['count']}{'+' if blocker.details.get('capped') else ''})"


def _record(explanation: Explanation, lines: Sequence[str]) -> dict[str, Any]:
    return {
        "subject": explanation.subject,
        "standing": explanation.standing,
        "blockers": [
            {
                "code": blocker.code,
                "evidence": blocker.evidence,
                "advice": blocker.advice,
                "command": line,
                "details": dict(blocker.details),
            }
            for blocker, line in zip(explanation.blockers, lines, strict=True)
        ],
    }
