"""Benchmark of the reply contract on a corpus of real replies."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Literal

from podium.agents.contract import NotAnAnswer, read_block, read_payload
from podium.agents.contract.payload import LOOKED_AT
from podium.core.model import FrozenModel, Json
from podium.testing.replies import BLOCKS, CONTRACTS, ReplyCase

MEGABYTES = (1, 10, 100)

__all__ = [
    "LOOKED_AT",
    "FamilyScore",
    "Length",
    "RatedReply",
    "lengths",
    "rate",
    "score",
    "scores",
]

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
