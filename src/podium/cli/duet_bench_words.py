"""How the marks of `podium bench duet` are told."""

from __future__ import annotations

from collections import Counter

from podium.cli.screen import Screen
from podium.domain.model import Json
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted
from podium.wiring.bench_duet import DuetScore
from podium.wiring.bench_duet_tally import KindScore
from podium.wiring.bench_duet_troubles import Trouble

_KINDS = ("KIND", "SAID", "EXACT", "TOOK", "ENTERS EACH", "WRONG")
_TROUBLES = ("TROUBLE", "KIND", "TO BE TOLD", "TRIES", "TOLD SO", "OTHERWISE")
_SEEN = ("starting", "ready", "busy", "asking", "unknown", "dead")


def duet_record(score: DuetScore) -> dict[str, Json]:
    return {**score.model_dump(mode="json"), "passed": score.passed}


def tell_duet(screen: Screen, score: DuetScore) -> None:
    screen.table(_KINDS, [_kind_row(each) for each in score.kinds])
    screen.line(
        f"{score.handoffs} handed on by {counted(score.pairs, 'pair')} in {counted(score.tasks, 'task')}: "
        f"{score.exact} exact, {score.wrong} routed wrongly, {counted(score.hangs, 'silent hang')}"
    )
    for (kind, way), count in Counter((each.sender, each.way) for each in score.inexact).items():
        screen.line(f"not exact: {kind}, {way}: {count}")
    screen.line()
    screen.table(_TROUBLES, [_trouble_row(each) for each in score.troubles])
    screen.line()
    screen.table(("TRULY", *(f"SEEN {seen.upper()}" for seen in _SEEN)), _confusion_rows(score))
    for words in score.failed:
        screen.line(f"failed: {shown_line(words)}")


def _kind_row(each: KindScore) -> tuple[str, ...]:
    figures = (each.said, each.exact, each.taken)
    return (each.kind, *map(str, figures), f"{each.enters:.2f}", str(each.wrong))


def _trouble_row(each: Trouble) -> tuple[str, ...]:
    told = (each.expected, str(each.tries), str(each.as_expected))
    return (each.name, each.kind, *told, "; ".join(each.otherwise))


def _confusion_rows(score: DuetScore) -> list[tuple[str, ...]]:
    return [
        (truth, *(str(seen.get(each, 0)) for each in _SEEN))
        for truth, seen in score.confusion.items()
    ]
