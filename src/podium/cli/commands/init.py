"""`podium init`."""

from __future__ import annotations

from pathlib import Path

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.wiring import init_project

app = command_app()


@app.command()
def init(context: typer.Context) -> None:
    """Make this folder a Podium project.

    Writes a small podium.yaml and a private .podium/ that git ignores. Never overwrites.

    \b
    Example:
      podium init
      podium init --project ~/work/shop
    """
    door = Door(context.obj)
    folder = (door.options.project or Path.cwd()).resolve()
    made = init_project(folder)
    door.screen.answer(
        {"project": str(folder), "made": made},
        lambda: door.screen.line(f"{folder}: made {', '.join(made)}; next: podium doctor"),
    )
