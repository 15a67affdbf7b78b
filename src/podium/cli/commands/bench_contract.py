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
    Marked,
    lengths,
    mark,
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
        bool, typer.Option("--show-wrong", help="Show each reply that was read wrongly.")
    ] = False,
) -> None:
    """Read a corpus of real replies, whole and broken; say how well that went, and what long ones take.

    Exits with 1 when anything but the answer was taken for it. An answer that was not taken costs
    one more question; a wrong one would be acted on. Of a long text only the end is read for an
    answer, so its time says little of its length.

    \b
    Example:
      podium bench contract
      podium bench contract --family "cut off" --show-wrong
    """
    options: Options = context.obj
    screen = Screen(json=options.json)
    marked = [mark(case) for case in _cases(family)]
    lines = scores(marked)
    total = score("all", marked)
    sizes = list(lengths())
    wrong = [each for each in marked if each.mark != "right"]
    shown = wrong if show_wrong else []
    screen.answer(
        _record(lines, total, sizes, shown), lambda: _words(screen, lines, total, sizes, shown)
    )
    raise typer.Exit(1 if total.wrongly_accepted else 0)


def _cases(family: str | None) -> list[ReplyCase]:
    cases = reply_cases(family)
    if not cases:
        known = ", ".join(dict.fromkeys(case.family for case in reply_cases()))
        raise BadInput(f"no family {family!r}; families: {known}")
    return cases


def _record(
    lines: Sequence[FamilyScore],
    total: FamilyScore,
    sizes: Sequence[Length],
    wrong: Sequence[Marked],
) -> dict[str, Json]:
    return {
        "total": _scored(total),
        "families": [_scored(line) for line in lines],
        "lengths": [each.model_dump() for each in sizes],
        "ratio": _ratio(sizes),
        "wrong": [each.model_dump(mode="json") for each in wrong],
    }


def _scored(line: FamilyScore) -> dict[str, Json]:
    return {**line.model_dump(), "accuracy": round(line.accuracy, 4)}


def _words(
    screen: Screen,
    lines: Sequence[FamilyScore],
    total: FamilyScore,
    sizes: Sequence[Length],
    wrong: Sequence[Marked],
) -> None:
    headers = ("FAMILY", "CASES", "RIGHT", "WRONGLY REFUSED", "WRONGLY ACCEPTED", "ACCURACY")
    screen.table(headers, [_row(line) for line in (*lines, total)])
    took = " → ".join(f"{each.megabytes} MB in {each.seconds * 1000:.0f} ms" for each in sizes)
    screen.line(
        f"payload at the end of {took}; 10 times the text takes {_ratio(sizes):.2f} times as long "
        f"(an answer is looked for in the last {LOOKED_AT:,} characters alone)"
    )
    for each in wrong:
        _show(screen, each)


def _row(line: FamilyScore) -> tuple[str, ...]:
    figures = (line.cases, line.right, line.wrongly_refused, line.wrongly_accepted)
    return (line.family, *map(str, figures), f"{line.accuracy:.1%}")


def _ratio(sizes: Sequence[Length]) -> float:
    """What the last tenfold in length cost. Linear is ten at most; less when only the end is looked at."""
    return sizes[-1].seconds / sizes[-2].seconds


def _show(screen: Screen, each: Marked) -> None:
    screen.line(f"\n{each.mark} wrongly: {each.case.family} / {each.case.name}")
    screen.line(f"  text: {escaped_line(each.case.text[-300:])}")
    expected = each.case.expect
    screen.line(f"  right: {escaped_line(str(expected.error or expected.payload))}")
    screen.line(f"  read: {escaped_line(str(each.words or each.payload))}")
