"""Command `podium bench duet`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from podium.cli.app import Options, command_app
from podium.cli.screen import Screen
from podium.jobs.duet.bench.handoffs import bench_duet, duet_record, print_duet_score

app = command_app()


@app.command()
def duet(
    context: typer.Context,
    handoffs: Annotated[
        int, typer.Option("--handoffs", metavar="N", min=1, help="Number of messages to hand on.")
    ] = 1000,
) -> None:
    """Benchmark message handoffs between pairs of misbehaving terminal programs.

    Uses real tmux, fake terminal agents and the flow of `podium duet`. Exits with 1 when a message
    was routed wrongly, a task hung without an error, or a failure was not reported.

    \b
    Example:
      podium bench duet
      podium bench duet --handoffs 100 --json
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    score = asyncio.run(bench_duet(handoffs, screen.stderr_line))
    screen.answer(duet_record(score), lambda: print_duet_score(screen, score))
    raise typer.Exit(0 if score.passed else 1)
