"""Command `podium bench operator`."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from podium.cli.app import Options, command_app
from podium.cli.screen import Screen
from podium.core.errors import BadInput
from podium.jobs.operator.bench.tally import print_tally, tally_of, tally_record
from podium.jobs.operator.bench.utterance_score import score_roofing
from podium.jobs.operator.bench.utterances import Half, UtteranceCase, utterance_cases

app = command_app()


@app.command()
def operator(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--class", metavar="C", help="Only messages of this class.")
    ] = None,
    half: Annotated[
        Half | None, typer.Option("--half", help="Only what classifiers are tuned on, or not.")
    ] = None,
    show_wrong: Annotated[
        bool, typer.Option("--show-wrong", help="Show each message that was understood wrongly.")
    ] = False,
) -> None:
    """Read a corpus of messages with the embedded classifier; say how well they were understood.

    A message counts as right when its intent, domain, tools, fields and tier are. Exits with 1 when
    anything that needs approval would be done without, or a class falls below its floor.

    \b
    Example:
      podium bench operator
      podium bench operator --class typos --half tuning --show-wrong
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    marked = asyncio.run(score_roofing(_utterances(kind, half)))
    tally = tally_of(marked, halved=half is not None)
    wrong = [utterance for utterance in marked if show_wrong and not utterance.right]
    screen.answer(tally_record(tally, wrong), lambda: print_tally(screen, tally, wrong))
    raise typer.Exit(1 if tally.total.unapproved or tally.below else 0)


def _utterances(kind: str | None, half: Half | None) -> list[UtteranceCase]:
    cases = utterance_cases(kind, half)
    if not cases:
        kinds = ", ".join(dict.fromkeys(case.kind for case in utterance_cases()))
        raise BadInput(f"no class {kind!r}; classes: {kinds}")
    return cases
