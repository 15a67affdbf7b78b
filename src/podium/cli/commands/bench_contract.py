"""Command `podium bench contract`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import typer

from podium.agents.contract import NotAnAnswer, read_block, read_payload
from podium.agents.contract.payload import LOOKED_AT
from podium.cli.app import Options, command_app
from podium.cli.screen import Screen
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json
from podium.render.text import escaped_line
from podium.testing.replies import BLOCKS, CONTRACTS, ReplyCase, reply_cases

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


MEGABYTES = (1, 10, 100)


_FILLER = (
    'Looking at the logs {now}: {"level": "info", "msg": "it\'s 5\\" wide", "n": [1, {"a": {}}]} and\n'
    "the rest of the file, where `if (x) { y(); }` is said more than once.\n"
)
_PAYLOAD = '\n```json\n{"verdict": "APPROVE", "feedback": "nothing to add"}\n```\n'


class RatedReply(FrozenModel):
    """A case with its result."""

    case: ReplyCase
    mark: Literal["right", "refused", "accepted"]
    """`refused`: there is an answer, and it was not taken. `accepted`: something else was taken for it."""
    found: Literal["strict", "repaired"] | None = None
    payload: Json = None
    problem: str | None = None
    words: str = ""


class FamilyScore(FrozenModel):
    """Score of one family."""

    family: str
    cases: int
    right: int
    wrongly_refused: int
    wrongly_accepted: int

    @property
    def accuracy(self) -> float:
        return self.right / self.cases if self.cases else 1.0


class Length(FrozenModel):
    """Time to find the payload at the end of one text; only its end is read."""

    megabytes: int
    seconds: float


def rate(case: ReplyCase) -> RatedReply:
    """Read one case and rate the result."""
    try:
        payload, how = _read(case)
    except NotAnAnswer as error:
        right = case.expect.error is not None
        return RatedReply(
            case=case,
            mark="right" if right else "refused",
            problem=error.problem,
            words=str(error),
        )
    same = case.expect.error is None and payload == _expected(case)
    return RatedReply(case=case, mark="right" if same else "accepted", found=how, payload=payload)


def scores(marked: Sequence[RatedReply]) -> list[FamilyScore]:
    """Score each family, in order of appearance."""
    families = dict.fromkeys(reading.case.family for reading in marked)
    return [
        score(family, [one for one in marked if one.case.family == family]) for family in families
    ]


def score(name: str, marked: Sequence[RatedReply]) -> FamilyScore:
    ratings = [reading.mark for reading in marked]
    return FamilyScore(
        family=name,
        cases=len(ratings),
        right=ratings.count("right"),
        wrongly_refused=ratings.count("refused"),
        wrongly_accepted=ratings.count("accepted"),
    )


def lengths() -> Iterator[Length]:
    """Time texts of growing length, full of braces and quotes, with the payload at their end."""
    for megabytes in MEGABYTES:
        text = _FILLER * (megabytes * 1_000_000 // len(_FILLER)) + _PAYLOAD
        began = time.perf_counter()
        read_payload(text, CONTRACTS["verdict"])
        yield Length(megabytes=megabytes, seconds=time.perf_counter() - began)


def _read(case: ReplyCase) -> tuple[Json, Literal["strict", "repaired"]]:
    if case.contract in BLOCKS:
        block = read_block(case.text, BLOCKS[case.contract], nonce=case.nonce)
        return {"header": dict(block.header), "body": block.body}, block.how
    reply = read_payload(case.text, CONTRACTS[case.contract], nonce=case.nonce)
    return reply.payload.model_dump(mode="json"), reply.how


def _expected(case: ReplyCase) -> Json:
    if case.contract in BLOCKS:
        return case.expect.payload
    return CONTRACTS[case.contract].model_validate(case.expect.payload).model_dump(mode="json")
