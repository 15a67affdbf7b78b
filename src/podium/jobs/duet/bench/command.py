"""Command `podium bench duet`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from podium.cli.app import Options, command_app
from podium.cli.screen import Screen
from podium.jobs.duet.bench.handoffs import bench_duet, duet_record, tell_duet

app = command_app()


@app.command()
def duet(
    context: typer.Context,
    handoffs: Annotated[
        int, typer.Option("--handoffs", metavar="N", min=1, help="How many messages are handed on.")
    ] = 1000,
) -> None:
    """Let pairs of misbehaving terminal programs hand work to each other; say what arrived and how.

    Real tmux, programs that stand in for terminal AIs, and the flow of `podium duet`. Exits with 1
    when a message was routed wrongly, anything hung in silence, or a trouble was not told of.

    \b
    Example:
      podium bench duet
      podium bench duet --handoffs 100 --json
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    score = asyncio.run(bench_duet(handoffs, screen.stderr_line))
    screen.answer(duet_record(score), lambda: tell_duet(screen, score))
    raise typer.Exit(0 if score.passed else 1)
