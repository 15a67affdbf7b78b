"""`podium playbook run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.door import Door
from podium.cli.hosting import host
from podium.domain.errors import BadInput
from podium.domain.work import Run

if TYPE_CHECKING:
    from podium.wiring import Podium
    from podium.wiring.queues import Place


def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAYBOOK.md", help="The playbook.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The plugin's profile. Else the nearest one upwards from the root."
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="The agent of podium.yaml that follows it.")
    ] = "",
    root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The plugin's folder. Else this project's."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="An input's value; once for each."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Work in a copy that is thrown away, and show what would change."
        ),
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay also while the run waits for a person.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Hand the run to a worker in the background.")
    ] = False,
) -> None:
    """Let an agent without hands follow a playbook, and prove what came of it.

    The agent only asks for tools; every call is judged, performed and recorded by Podium. Success is
    decided by the playbook's own commands, which Podium runs at the end. Ctrl-C leaves the run at its
    checkpoint. `podium playbook restore` puts the folder back to what it was.

    Leaves with 0 when all criteria are met, 1 when not, 3 when it waits for a person, 5 when a limit was
    reached and 6 when time ran out. With --json one object to a line: `launch`, every event, `result`.

    \b
    Example:
      podium playbook run bump.md --profile plugin-profile.yaml --input version=2.0
      podium playbook run bump.md --agent gemini --dry-run
    """
    door = Door(context.obj)
    if wait and detach:
        raise BadInput("--wait stays with the run, --detach leaves it; say one of them")

    async def begin(podium: Podium, place: Place | None = None) -> Run:
        # Before the store is opened: what is refused leaves nothing behind.
        from podium.wiring.playbook_jobs import job_of_files

        job = job_of_files(
            podium,
            file,
            profile=profile,
            root=root,
            agent=agent,
            inputs=given_inputs(inputs or []),
            dry_run=dry_run,
        )
        engine = await podium.hosting_engine()
        terms = door.configuration.terms()
        told = job.model_dump(mode="json")
        where = place.model_dump() if place else {}
        return await engine.start(
            "playbook", told, task=job.playbook.head.name, settings=terms, **where
        )

    if detach:
        from podium.cli.detaching import hand_over
        from podium.wiring.queues import Place

        hand_over(door, begin, Place())
    else:
        host(door, begin, wait=wait)


def given_inputs(written: list[str]) -> dict[str, str]:
    """NAME=VALUE, each once. Raises `BadInput` with all that cannot be read."""
    given: dict[str, str] = {}
    problems: list[str] = []
    for each in written:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            problems.append(f"write --input NAME=VALUE, not {each[:60]!r}")
        elif name.strip() in given:
            problems.append(f"input {name.strip()!r} is given twice")
        else:
            given[name.strip()] = value
    if problems:
        raise BadInput("\n".join(problems))
    return given
