"""What is known of a turn from before a crash: what its model said, and which wishes were turned away."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.domain.asking import ModelAnswer, Turn
from podium.domain.events import Event, ModelAnswered, RunRetried, ToolRefused, UsageRecorded
from podium.domain.gating import BuiltInRule, Usage
from podium.ports import EventQuery, Journal

_TYPES = ("model_answered", "run_retried", "tool_refused", "usage_recorded")
_PAGE = 1000


@dataclass
class TurnMemory:
    """Answers by their number, and keys of wishes that the door itself refused."""

    answers: dict[int, ModelAnswer] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def answer(self, number: int, request: str) -> ModelAnswer | None:
        """The answer to exactly this request. One to another, and all behind it, are forgotten."""
        known = self.answers.get(number)
        if known is not None and known.request == request and known.kept is not None:
            return known
        self.forget_from(number)
        return None

    def keep(self, answer: ModelAnswer) -> None:
        self.forget_from(answer.number)
        self.answers[answer.number] = answer

    def count(self, recorded: Usage) -> None:
        """So much was recorded as used by an attempt that failed: the first answers, as far as it reaches.

        An attempt that ended before it came to an answer has not counted it.
        """
        tokens = _tokens(recorded)
        for number, each in self.answers.items():
            if each.counted:
                continue
            tokens -= _tokens(each.usage)
            if tokens < 0:
                return
            self.answers[number] = each.model_copy(update={"counted": True})

    def forget_from(self, number: int) -> None:
        self.answers = {each: said for each, said in self.answers.items() if each < number}


async def memory_of(journal: Journal, turn: Turn, agent: str) -> TurnMemory:
    """What the journal tells of earlier attempts at the turn. A person's retry makes it forgotten."""
    memory = TurnMemory()
    after = 0
    while page := await journal.read(
        EventQuery(run_id=turn.run_id, types=_TYPES, after_seq=after, limit=_PAGE)
    ):
        for event in page:
            memory = _learned(memory, event, turn, agent)
        after = page[-1].seq
        if len(page) < _PAGE:
            break
    return memory


def _learned(memory: TurnMemory, event: Event, turn: Turn, agent: str) -> TurnMemory:
    match event.body:
        case RunRetried(discarded_steps=steps) if turn.step_key in steps:
            return TurnMemory()
        case ModelAnswered(step=turn.step_key, asking=turn.asking, agent=who, answer=answer):
            if who == agent:
                memory.keep(answer)
        case UsageRecorded(step=turn.step_key, usage=recorded):
            memory.count(recorded)
        case ToolRefused(call=key, rule=BuiltInRule.HOOK_DOOR):
            if key.startswith(f"{turn.run_id}:{turn.step_key}:"):
                memory.refused.add(key)
    return memory


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens
