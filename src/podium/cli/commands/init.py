"""`podium init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.wiring import init_project

app = command_app()


@app.command()
def init(
    context: typer.Context,
    example: Annotated[
        bool, typer.Option("--example", help="Also scenes that `podium rehearse` can play.")
    ] = False,
) -> None:
    """Make this folder a Podium project.

    Writes a small podium.yaml and a private .podium/ that git ignores. Never overwrites.

    \b
    Example:
      podium init
      podium init --example && podium rehearse
      podium init --project ~/shop
    """
    door = Door(context.obj)
    folder = (door.options.project or Path.cwd()).resolve()
    made = init_project(folder, example=example)
    following = "podium rehearse" if example else "podium doctor"
    door.screen.answer(
        {"project": str(folder), "made": made},
        lambda: door.screen.line(f"{folder}: made {', '.join(made)}; next: {following}"),
    )
