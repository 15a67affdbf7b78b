"""Command `podium rehearse`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.run_host import host
from podium.core.work import Run
from podium.jobs.rehearsal.flow import FLOW, rehearsal_plan

app = command_app()


@app.command()
def rehearse(
    context: typer.Context,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Keep the process running while the run waits for a person."),
    ] = False,
) -> None:
    """Run the scenes of podium.yaml with their agents, to try out a policy.

    With scripted agents this needs no model and no key. Every call passes the real gate and is really
    performed, in this folder.

    \b
    Example:
      podium rehearse --wait
      podium rehearse
    """
    cli = CliContext(context.obj)
    plan = rehearsal_plan(cli.configuration).model_dump(mode="json")
    settings = cli.configuration.run_settings()

    async def begin(podium: Podium) -> Run:
        engine = await podium.hosting_engine()
        return await engine.start(FLOW, plan, task=FLOW, settings=settings)

    host(cli, begin, wait=wait)
