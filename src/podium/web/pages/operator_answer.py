"""The operator's answer as a page shows it: five blocks, the calls with their receipts, what can be done next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podium.domain.model import Json
from podium.domain.operating import CallResult, OperatorAnswer, OperatorMode
from podium.flows.operator.blocks import block_lines

HINTS = {
    "INTENT": "what was understood",
    "PLAN": "what would be done",
    "RESULT": "what was done",
    "TOOL IMPACT": "what it touches",
    "RISKS / GATES": "what guards it",
    "NEXT ACTIONS": "what you can do now",
}
UNDER_WAY = ("awaiting_approval", "enqueued")
MOST_FIELDS = 12


@dataclass(frozen=True)
class Block:
    """One of the five: facts with a name, and other lines beneath them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]

    @property
    def hint(self) -> str:
        return HINTS[self.title]


@dataclass(frozen=True)
class ShownCall:
    """A call of the plan, with what proves that it was done."""

    result: CallResult
    tier: str
    undo: str
    """The tool that takes it back; empty where nothing does."""
    receipt: str
    """`RUN#NUMBER`; empty before there is one."""

    @property
    def checks(self) -> int:
        """Rows that were read back to see that it is true."""
        found = self.result.fields.get("verification")
        return len(found) if isinstance(found, list) else 0


@dataclass(frozen=True)
class ShownAnswer:
    """An answer as the template takes it."""

    answer: OperatorAnswer
    blocks: tuple[Block, ...]
    calls: tuple[ShownCall, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    """What was handed in with the message, to be handed in again."""
    proof: str = ""
    """How the chain of receipts was found; empty before anybody looked."""
    is_proven: bool = False
    trouble: str = ""
    """Why nobody does it, and what to do."""

    @property
    def is_under_way(self) -> bool:
        return self.answer.run_id is not None and self.answer.status in UNDER_WAY

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of what the message lacks, each to be filled in."""
        said = self.answer.classification
        if self.answer.status != "clarify" or said is None:
            return ()
        names = (part.strip() for each in said.missing_evidence for part in each.split(" or "))
        return tuple(dict.fromkeys(name for name in names if name))[:MOST_FIELDS]

    @property
    def can_be_done(self) -> bool:
        """Whether it was only looked at, and could be done."""
        return self.answer.status in ("analyzed", "planned") and self.answer.plan is not None

    @property
    def could_be_planned(self) -> bool:
        return self.can_be_done and self.answer.mode is OperatorMode.ANALYZE


def shown_answer(
    answer: OperatorAnswer,
    *,
    context: Mapping[str, str] | None = None,
    faults: Sequence[str] | None = None,
    trouble: str = "",
) -> ShownAnswer:
    """`faults` are those of the receipts' chain; None: nobody looked at it."""
    return ShownAnswer(
        answer=answer,
        blocks=tuple(_block(title, lines) for title, lines in block_lines(answer).items()),
        calls=tuple(_calls(answer)),
        context=context or {},
        proof="" if faults is None else "; ".join(faults) or "sound",
        is_proven=faults is not None and not faults,
        trouble=trouble,
    )


def _block(title: str, lines: Sequence[str]) -> Block:
    """Lines that begin at the margin name a fact; what is indented belongs to what stands above it."""
    facts, others = list[tuple[str, str]](), list[str]()
    for line in lines:
        name, mark, value = line.partition(": ")
        if mark and not line.startswith(" ") and not others:
            facts.append((name, value))
        else:
            others.append(line)
    return Block(title, tuple(facts), tuple(others))


def _calls(answer: OperatorAnswer) -> Iterator[ShownCall]:
    steps = {step.number: step for step in answer.plan.steps} if answer.plan else {}
    for result in answer.results:
        step = steps.get(result.number)
        name = f"{answer.run_id}#{result.receipt}" if result.receipt is not None else ""
        yield ShownCall(
            result=result,
            tier=str(step.tier) if step else "",
            undo=(step.undo or "") if step else "",
            receipt=name,
        )


def context_texts(given: Mapping[str, Json]) -> dict[str, str]:
    """What a form handed in, field by field, without those that were left empty."""
    return {
        name.removeprefix(FIELD): str(text).strip()
        for name, text in given.items()
        if name.startswith(FIELD) and str(text).strip()
    }


FIELD = "known."
"""How the fields of a context are named in a form."""
