"""`podium doctor`."""

from __future__ import annotations

import os

import typer

from podium.cli.command import command_app
from podium.cli.door import Door, run_to_end
from podium.cli.screen import Screen
from podium.domain.errors import ConfigInvalid
from podium.wiring import Configuration, load_readable, open_podium
from podium.wiring.checkup import Finding, examine

app = command_app()


@app.command()
def doctor(context: typer.Context) -> None:
    """Check what is really usable here, and say how to mend the rest.

    Leaves with 0 when nothing that all work needs has failed; a warning is about some work only.

    \b
    Example:
      podium doctor
    """
    door = Door(context.obj)
    configuration, settings = _settings(door)

    async def work() -> list[Finding]:
        async with open_podium(configuration, os.environ) as podium:
            return await examine(podium, os.environ)

    findings = [settings, *run_to_end(work())]
    healthy = all(finding.state != "fail" for finding in findings)
    record = {"healthy": healthy, "checks": [one.model_dump(mode="json") for one in findings]}
    door.screen.answer(record, lambda: _words(door.screen, findings))
    raise typer.Exit(0 if healthy else 1)


def _settings(door: Door) -> tuple[Configuration, Finding]:
    """The configuration, or what is left of it without a broken file, and what is wrong with that."""
    try:
        configuration = door.configuration
    except ConfigInvalid as invalid:
        configuration, _ = load_readable(os.environ, project=door.options.project)
        fault = Finding(
            name="settings", state="fail", says=str(invalid), mend="put the file right as said"
        )
        return configuration, fault
    names = [layer.located.file for layer in configuration.layers if layer.located.digest]
    says = ", ".join(names) or "no files; the defaults hold"
    return configuration, Finding(name="settings", state="ok", says=says)


def _words(screen: Screen, findings: list[Finding]) -> None:
    for finding in findings:
        screen.line(f"{finding.state:<5} {finding.name:<11} {finding.says}")
        if finding.mend:
            screen.line(f"{'':<17} → {finding.mend}")
