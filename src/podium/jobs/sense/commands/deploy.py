"""`podium deploy`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import Door, RootToo, naming_root, root_words, take_root
from podium.cli.login import approver
from podium.cli.progress import Progress
from podium.core.model import Json
from podium.core.work import Mode
from podium.jobs.sense.candidate_report import ReportContext, render_candidate, report_context
from podium.jobs.sense.candidates import CandidateView, deploy_candidate
from podium.jobs.sense.models import CandidateState

app = command_app()

EXIT_CODES: dict[CandidateState, int] = {
    "delivered": 0,
    "waiting": 3,
    "approved": 3,
}
"""Exit codes by state; all others (refused, rejected, expired) exit with 4. In a dry run the person moves the file: 3."""
REFUSED = 4


@app.command()
def deploy(
    context: typer.Context,
    candidate: Annotated[
        str, typer.Argument(metavar="ID", help="Of the work order, or the beginning.")
    ],
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="Instead of the mode that is set.")
    ] = None,
    root: RootToo = None,
) -> None:
    """Say yes to a candidate and see it into the inbox, in one go.

    What was approved already is only seen through. In a dry run nothing is moved; the answer says
    what to move. Exits with 0 when it was delivered, 3 when it waits for somebody, 4 when it was
    refused or rejected.

    \b
    Example:
      podium deploy WO-FIX-OPAL_API
    """
    take_root(context, root)
    context.obj.mode = mode or ""
    door = Door(context.obj)
    folder = door.configuration.folders.project
    with naming_root(folder):
        door.must_have_state("candidate", candidate)
    project = (f" --mode {mode}" if mode else "") + root_words(folder)
    door.options.parting_words = (
        f"your yes stands; `podium deploy {candidate}{project}` goes on, and so does "
        f"`podium worker{root_words(folder)}`"
    )

    who = approver(door)

    async def work(podium: Podium) -> tuple[CandidateView, ReportContext]:
        with Progress(sys.stderr) as progress:
            progress.doing(f"delivering {candidate}")
            view = await deploy_candidate(podium, candidate, by=who)
        return view, await report_context(podium, [view.standing])

    with naming_root(folder):
        view, around = door.run(work)
    record: dict[str, Json] = {
        "candidate": {**view.standing.model_dump(mode="json"), "state": view.state}
    }
    door.screen.answer(record, lambda: render_candidate(door.screen, view.standing, around))
    raise typer.Exit(EXIT_CODES.get(view.standing.state, REFUSED))
