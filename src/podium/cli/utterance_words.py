"""How the marks of `podium bench operator` are told."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cli.screen import Screen
from podium.domain.model import Json
from podium.telling.untrusted import shown_line
from podium.wiring.bench_operator import MarkedUtterance
from podium.wiring.bench_tally import ClassScore, Share, Tally

_HEADERS = (
    "CLASS", "CASES", "RIGHT", "INTENT", "DOMAIN", "TOOLS", "FIELDS", "TIER",
    "WRONGLY EXECUTED", "AT ONCE", "FLOOR",
)  # fmt: skip


def tally_record(tally: Tally, wrong: Sequence[MarkedUtterance]) -> dict[str, Json]:
    return {
        "total": _scored(tally.total, tally),
        "halves": [_scored(line, tally) for line in tally.halves],
        "classes": [_scored(line, tally) for line in tally.classes],
        "milliseconds": {"p50": tally.p50 * 1000, "p95": tally.p95 * 1000},
        "below_floor": [line.name for line in tally.below],
        "wrong": [_wrong(each) for each in wrong],
    }


def _scored(line: ClassScore, tally: Tally) -> dict[str, Json]:
    figures = {**line.model_dump(), "accuracy": round(line.accuracy, 4)}
    floor = tally.floor(line)
    return figures if floor is None else {**figures, "floor": floor}


def _wrong(each: MarkedUtterance) -> dict[str, Json]:
    return {
        "say": each.case.say,
        "class": each.case.kind,
        "half": each.case.half,
        "faults": list(each.faults),
        "wrongly_executed": each.wrongly_executed,
        "read": each.read.model_dump(mode="json"),
    }


def tell_tally(screen: Screen, tally: Tally, wrong: Sequence[MarkedUtterance]) -> None:
    lines = (*tally.classes, *tally.halves, tally.total)
    screen.table(_HEADERS, [_row(line, tally) for line in lines])
    screen.line(
        f"a message is read and judged in {tally.p50 * 1000:.1f} ms (p50), "
        f"{tally.p95 * 1000:.1f} ms (p95)"
    )
    if tally.total.unapproved:
        screen.line(f"{tally.total.unapproved} would be done without the approval that they need")
    for line in tally.below:
        screen.line(f"{line.name}: {line.accuracy:.1%} is below {tally.floor(line):.0%}")
    for each in wrong:
        _show(screen, each)


def _row(line: ClassScore, tally: Tally) -> tuple[str, ...]:
    shares = (line.intent, line.domain, line.tools, line.fields, line.tier)
    floor = tally.floor(line)
    return (
        line.name,
        str(line.cases),
        f"{line.accuracy:.1%}",
        *map(_share, shares),
        str(line.wrongly_executed),
        str(line.at_once),
        "" if floor is None else f"{floor:.0%}",
    )


def _share(share: Share) -> str:
    return f"{share.right}/{share.of}" if share.of else "-"


def _show(screen: Screen, each: MarkedUtterance) -> None:
    executed = "; WRONGLY EXECUTED" if each.wrongly_executed else ""
    screen.line(f"\n{each.case.kind} ({each.case.half}): {shown_line(each.case.say)}{executed}")
    for fault in each.faults:
        screen.line(f"  {shown_line(fault)}")
    screen.line(f"  read with {each.read.confidence:.0%}: {shown_line(each.read.reasoning)}")
