"""`podium init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.wiring import init_project
from podium.wiring.folders import PROJECT_FILE
from podium.wiring.standing import standings

app = command_app()

_PREFERRED = ("claude", "codex", "gemini", "opencode")
"""Which of several agents a new project uses first."""


@app.command()
def init(
    context: typer.Context,
    example: Annotated[
        bool, typer.Option("--example", help="Also scenes that `podium rehearse` can play.")
    ] = False,
) -> None:
    """Make this folder a Podium project.

    Writes a small podium.yaml and a private .podium/ that git ignores. Never overwrites. Agent CLIs that are installed and logged in
    are named in podium.yaml, unless your own settings name agents already.

    \b
    Example:
      podium init
      podium init --example && podium rehearse
      podium init --project ~/shop
    """
    door = Door(context.obj)
    folder = (door.options.project or Path.cwd()).resolve()
    is_new = folder.is_dir() and not (folder / PROJECT_FILE).exists()
    known = door.run(standings) if is_new and not example else []
    own = [agent.name for agent in known if agent.configured]
    ready = [] if own else [agent.kind for agent in known if agent.ready]
    agents = sorted(ready, key=_PREFERRED.index)
    made = init_project(folder, agents=agents, example=example)

    def show() -> None:
        door.screen.line(f"{folder}: made {', '.join(made)}")
        if example:
            door.screen.line("next: podium rehearse")
        elif own or agents:
            where = "your own settings" if own else "podium.yaml"
            door.screen.line(f"agents in {where}: {', '.join(own or agents)}")
            door.screen.line('next: podium run "what should be done"')
        else:
            door.screen.line(
                "no agent CLI is installed and logged in; `podium agents list` shows what is missing"
            )
            door.screen.line("next: name one under `agents:` in podium.yaml, then podium doctor")

    door.screen.answer({"project": str(folder), "made": made, "agents": own or agents}, show)
