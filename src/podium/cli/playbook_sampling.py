"""`podium playbook sample`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.screen import Screen


def sample(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Which one. Left out: list them.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A new folder. Else one of its name.")
    ] = None,
) -> None:
    """Lay out a playbook that comes with Podium, with a plugin to try it on and a scripted agent.

    \b
    Example:
      podium playbook sample
      podium playbook sample fix-failing-test
      cd fix-failing-test && podium playbook run playbook.md
    """
    from podium.wiring.playbook_samples import lay_out, sample_names

    screen = Screen(json=context.obj.json)
    if not name:
        names = sample_names()
        screen.answer({"samples": names}, lambda: screen.line("\n".join(names)))
        return
    made = lay_out(name, folder or Path(name))
    screen.answer(
        made.model_dump(mode="json"),
        lambda: screen.line(
            f"{made.name} is in {made.folder}; next:\n  cd {shlex.quote(made.folder)} && {made.command}"
        ),
    )
