"""Command `podium bench contract`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from podium.cli.app import Options, command_app
from podium.cli.reply_bench import (
    LOOKED_AT,
    FamilyScore,
    Length,
    RatedReply,
    lengths,
    rate,
    score,
    scores,
)
from podium.cli.screen import Screen
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.render.text import escaped_line
from podium.testing.replies import ReplyCase, reply_cases

app = command_app()


@app.command()
def contract(
    context: typer.Context,
    family: Annotated[
        str | None, typer.Option("--family", metavar="F", help="Only replies of this family.")
    ] = None,
    show_wrong: Annotated[
        bool, typer.Option("--show-wrong", help="Show each reply that was misread.")
    ] = False,
) -> None:
    """Read a corpus of real replies, complete and broken; report accuracy, and the time long ones take.

    Exits with 1 when anything else was taken for the answer. A missed answer costs
    one more question; a wrong one would be acted on. Only the end of a long text is read for an
    answer, so its time does not grow with its length.

    \b
    Example:
      podium bench contract
      podium bench contract --family "cut off" --show-wrong
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    marked = [rate(case) for case in _cases(family)]
    lines = scores(marked)
    total = score("all", marked)
    sizes = list(lengths())
    wrong = [reading for reading in marked if reading.mark != "right"]
    printed = wrong if show_wrong else []
    screen.answer(
        _record(lines, total, sizes, printed), lambda: _print(screen, lines, total, sizes, printed)
    )
    raise typer.Exit(1 if total.wrongly_accepted else 0)


def _cases(family: str | None) -> list[ReplyCase]:
    cases = reply_cases(family)
    if not cases:
        families = ", ".join(dict.fromkeys(case.family for case in reply_cases()))
        raise BadInput(f"unknown family {family!r}; families: {families}")
    return cases


def _record(
    lines: Sequence[FamilyScore],
    total: FamilyScore,
    sizes: Sequence[Length],
    wrong: Sequence[RatedReply],
) -> dict[str, Json]:
    return {
        "total": _scored(total),
        "families": [_scored(line) for line in lines],
        "lengths": [item.model_dump() for item in sizes],
        "ratio": _ratio(sizes),
        "wrong": [item.model_dump(mode="json") for item in wrong],
    }


def _scored(line: FamilyScore) -> dict[str, Json]:
    return {**line.model_dump(), "accuracy": round(line.accuracy, 4)}


def _print(
    screen: Screen,
    lines: Sequence[FamilyScore],
    total: FamilyScore,
    sizes: Sequence[Length],
    wrong: Sequence[RatedReply],
) -> None:
    headers = ("FAMILY", "CASES", "RIGHT", "WRONGLY REFUSED", "WRONGLY ACCEPTED", "ACCURACY")
    screen.table(headers, [_row(line) for line in (*lines, total)])
    took = " → ".join(
        f"{length.megabytes} MB in {length.seconds * 1000:.0f} ms" for length in sizes
    )
    screen.line(
        f"payload at the end of {took}; 10 times the text takes {_ratio(sizes):.2f} times as long "
        f"(answers are searched in the last {LOOKED_AT:,} characters only)"
    )
    for reading in wrong:
        _show(screen, reading)


def _row(line: FamilyScore) -> tuple[str, ...]:
    figures = (line.cases, line.right, line.wrongly_refused, line.wrongly_accepted)
    return (line.family, *map(str, figures), f"{line.accuracy:.1%}")


def _ratio(sizes: Sequence[Length]) -> float:
    """Time ratio of the last tenfold increase in length. Linear is ten at most; less when only the end is read."""
    return sizes[-1].seconds / sizes[-2].seconds


def _show(screen: Screen, reading: RatedReply) -> None:
    screen.line(f"\n{reading.mark} wrongly: {reading.case.family} / {reading.case.name}")
    screen.line(f"  text: {escaped_line(reading.case.text[-300:])}")
    expected = reading.case.expect
    screen.line(f"  right: {escaped_line(str(expected.error or expected.payload))}")
    screen.line(f"  read: {escaped_line(str(reading.words or reading.payload))}")
