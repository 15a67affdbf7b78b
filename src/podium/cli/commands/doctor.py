"""`podium doctor`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from podium.app.app import open_podium
from podium.app.checkup import CheckFinding, examine, fix_what_is_safe
from podium.cli.app import command_app
from podium.cli.context import CliContext, run_to_end
from podium.cli.screen import Colour, Screen
from podium.config.configuration import Configuration, load_readable
from podium.core.errors import ConfigInvalid
from podium.render.text import counted

app = command_app()

_COLOURS: dict[str, Colour] = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command()
def doctor(
    context: typer.Context,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Apply safe fixes first: restrict folder permissions, remove leftovers of killed processes.",
        ),
    ] = False,
) -> None:
    """Check the environment and suggest fixes.

    Exits with 0 when no required check failed; a warning concerns some commands only.

    \b
    Example:
      podium doctor
      podium doctor --fix
    """
    cli = CliContext(context.obj)
    configuration, settings = _settings(cli)

    async def work() -> tuple[list[str], list[CheckFinding]]:
        async with open_podium(configuration, os.environ) as podium:
            fixed = await fix_what_is_safe(podium) if fix else []
            return fixed, await examine(podium, os.environ)

    fixed, examined = run_to_end(work())
    findings = [settings, *examined]
    healthy = all(finding.state != "fail" for finding in findings)
    checks = [one.model_dump(mode="json") for one in findings]
    record = {"healthy": healthy, "checks": checks, **({"fixed": fixed} if fix else {})}
    cli.screen.answer(record, lambda: _print(cli.screen, findings, fixed if fix else None))
    raise typer.Exit(0 if healthy else 1)


def _settings(cli: CliContext) -> tuple[Configuration, CheckFinding]:
    """The configuration, or what is left of it without a broken file, and what is wrong with that."""
    try:
        configuration = cli.configuration
    except ConfigInvalid as invalid:
        configuration, _ = load_readable(os.environ, project=cli.options.project)
        finding = CheckFinding(
            name="settings", state="fail", says=str(invalid), mend="fix the file"
        )
        return configuration, finding
    names = [layer.located.file for layer in configuration.layers if layer.located.digest]
    says = ", ".join(names) or "no files; the defaults apply"
    return configuration, CheckFinding(name="settings", state="ok", says=says)


def _print(screen: Screen, findings: list[CheckFinding], fixed: list[str] | None) -> None:
    """`fixed` is None without `--fix`."""
    for sentence in ("nothing to fix",) if fixed == [] else fixed or ():
        screen.line(f"fixed {'':<11} {sentence}")
    for finding in findings:
        text = f"{finding.name:<11} {finding.says}"
        screen.marked_line(finding.state.ljust(5), _COLOURS[finding.state], text)
        if finding.mend:
            screen.line(f"{'':<17} → {finding.mend}")
    screen.line(_summary(findings))


def _summary(findings: list[CheckFinding]) -> str:
    problems = sum(finding.state == "fail" for finding in findings)
    warnings = counted(sum(finding.state == "warn" for finding in findings), "warning")
    if problems:
        return f"not ready: {counted(problems, 'problem')}, {warnings}"
    if warnings.startswith("0 "):
        return "ready"
    return f"ready, with {warnings}: some commands may not work"
