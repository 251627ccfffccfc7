from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from interlock.cli.choose import choose_app
from interlock.cli.options import AppCommand, addressed, json_option
from interlock.cli.output import show_json

if TYPE_CHECKING:
    from interlock.operate.doctor_finding import Finding

FINDINGS = 5


@click.command(name="doctor", cls=AppCommand)
@json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> None:
    """Find what is wrong with the database, the fleet and the settings, and say what helps; exit code 5 if anything is.

    It changes nothing. Privileges, versions, missing or invalid indexes, dead rows, long transactions, poolers, clocks,
    contradicting settings, silent servers and orphaned jobs are looked at.
    """
    findings = [
        finding if finding.command is None else replace(finding, command=addressed(finding.command, ctx.obj))
        for finding in asyncio.run(_examine(ctx.obj))
    ]
    if as_json:
        show_json([_record(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(_text(finding))
    if not findings:
        click.echo("nothing found", err=True)
    ctx.exit(FINDINGS if findings else 0)


async def _examine(options: dict[str, Any]) -> list[Finding]:
    """Without the check of the schema that other commands make first: a wrong version is a finding here."""
    app = choose_app(options)
    try:
        return await app.adoctor()
    finally:
        await app.aclose()


def _text(finding: Finding) -> str:
    command = f"\n  run: {finding.command}" if finding.command else ""
    return f"{finding.check}: {finding.found}\n  do:  {finding.advice}{command}"


def _record(finding: Finding) -> dict[str, Any]:
    return {"check": finding.check, "found": finding.found, "advice": finding.advice, "command": finding.command}
