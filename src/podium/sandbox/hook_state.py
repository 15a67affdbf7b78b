"""State of one turn at the hook server: expected uses of tools, call limits, what a crash left, and progress."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.core.decisions import BuiltInRule, Call, CallOutcome, Refusal, Usage, digest_of
from podium.core.errors import CallRefused
from podium.core.events import (
    AgentProgressed,
    Event,
    ModelAnswered,
    ProgressKind,
    RunRetried,
    ToolRefused,
    UsageRecorded,
)
from podium.core.turns import ModelAnswer, StopKind, Turn, TurnLimits, TurnStop
from podium.ports import ANY_USE, EventQuery, Journal


class ExpectedUses:
    """Uses that a CLI has told of on its own line to Podium, and those that its hook has asked for of them.

    A command that the gate lets run may find the hook's token. With it, it could ask for something
    else, or once more for the same, and use up the approval of a call that is about to be made.
    """

    def __init__(self, seconds: float) -> None:
        """A hook may be quicker than what its CLI tells; so long it waits for that."""
        self._seconds = seconds
        self._open: dict[str, list[set[str]]] = {}
        self._news = asyncio.Event()

    def add(self, use: str) -> None:
        self._open.setdefault(use, []).append(set())
        news, self._news = self._news, asyncio.Event()
        news.set()

    def remove(self, use: str) -> None:
        """One of the uses by this name is asked for no more: the one that was asked for first."""
        uses = self._open.get(use, [])
        if uses:
            uses.sort(key=bool, reverse=True)
            uses.pop(0)
        if not uses:
            self._open.pop(use, None)

    async def take(self, ref: str) -> None:
        """Return when the use is expected. Raises `CallRefused` when it is not, or was asked for."""
        try:
            async with asyncio.timeout(self._seconds):
                while not self._is_taken(ref):
                    await self._news.wait()
        except TimeoutError:
            raise CallRefused(
                f"the agent has not announced the tool use {ref[:100]!r}; denied"
            ) from None

    def _is_taken(self, ref: str) -> bool:
        # One use may be several questions: they are told apart by what follows the sign.
        for asked in self._open.get(ref.partition("#")[0], []):
            if ref not in asked:
                asked.add(ref)
                return True
        return ANY_USE in self._open


FINISH = "finish"
"""An agent that has used up its calls may still say that it is done."""


class CallLimits:
    """Counts a turn's calls. Once a limit is reached every further call is refused."""

    def __init__(self, limits: TurnLimits) -> None:
        self._most = limits.tool_calls
        self._same = limits.same_results
        self._made = 0
        self._call_counts: Counter[str] = Counter()
        self.stopped: TurnStop | None = None

    def begin(self, tool: str) -> None:
        """Count a wish. Raises `CallRefused` when the turn may have no more of them."""
        if tool == FINISH and (self.stopped is None or self.stopped.kind == "tool_calls"):
            return
        if self.stopped is None and self._most is not None and self._made >= self._most:
            self._stop("tool_calls", f"the turn has used all {self._most} of its calls")
        if self.stopped is not None:
            raise CallRefused(f"limit reached: {self.stopped.reason}; end your turn now")
        self._made += 1

    def ended(self, call: Call, answer: CallOutcome | Refusal, *, changes: bool) -> None:
        """Learn what came of a call. `changes` says that it may have changed something.

        What was seen before such a call says nothing about what will be seen after it.
        """
        if self._same is None:
            return
        came_to = digest_of([call.fingerprint, _result(answer)])
        times = self._call_counts[came_to] + 1
        if changes and isinstance(answer, CallOutcome) and answer.ok:
            self._call_counts.clear()
        self._call_counts[came_to] = times
        if times >= self._same and self.stopped is None and call.tool != FINISH:
            self._stop(
                "same_results", f"{call.tool!r} was called {times} times with the same result"
            )

    def _stop(self, kind: StopKind, reason: str) -> None:
        self.stopped = TurnStop(kind=kind, reason=reason)


def _result(answer: CallOutcome | Refusal) -> object:
    if isinstance(answer, Refusal):
        return [answer.decision.rule, answer.decision.reason]
    return [answer.ok, answer.result, answer.error]


_TYPES = ("model_answered", "run_retried", "tool_refused", "usage_recorded")
_PAGE = 1000


@dataclass
class TurnMemory:
    """Answers by their number, and keys of wishes that the door itself refused."""

    answers: dict[int, ModelAnswer] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    def answer(self, number: int, request: str) -> ModelAnswer | None:
        """The answer to exactly this request. One to another, and all behind it, are forgotten."""
        answer = self.answers.get(number)
        if answer is not None and answer.request == request and answer.kept is not None:
            return answer
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
        for number, answer in self.answers.items():
            if answer.counted:
                continue
            tokens -= _tokens(answer.usage)
            if tokens < 0:
                return
            self.answers[number] = answer.model_copy(update={"counted": True})

    def forget_from(self, number: int) -> None:
        self.answers = {key: answer for key, answer in self.answers.items() if key < number}


async def memory_of(journal: Journal, turn: Turn, agent: str) -> TurnMemory:
    """Earlier attempts at the turn, as the journal tells of them. A person's retry makes them forgotten."""
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


PAUSE_SECONDS = 0.5
"""Pieces of one kind that come within this time become one event."""
MAX_CHARACTERS = 2_000
HELD_BACK = 400
"""Characters kept for the next event of a stream: as long as any usual key, also with its characters escaped."""
MAX_EVENTS = 1_000
"""A turn that says more is followed by its transcript alone."""


class ProgressNotes:
    """Gathers pieces and notes them in the run's journal. Never waits and never raises."""

    def __init__(
        self, journal: Journal, turn: Turn, agent: str, redact: Callable[[str], str] = str
    ) -> None:
        """`redact` takes secrets out of what was gathered, before it is cut."""
        self._redact = redact
        self._journal = journal
        self._turn = turn
        self._agent = agent
        self._kind: ProgressKind = "text"
        self._pieces: list[str] = []
        self._length = 0
        self._noted = 0
        self._timer: asyncio.TimerHandle | None = None

    def report_progress(self, kind: ProgressKind, text: str) -> None:
        if not text or self._noted >= MAX_EVENTS:
            return
        if kind != self._kind:
            self.flush()
            self._kind = kind
        capacity = MAX_CHARACTERS + HELD_BACK - self._length
        if capacity > 0:
            self._pieces.append(text[:capacity])
        self._length += len(text)
        if kind not in ("text", "thinking"):
            self.flush()
        elif self._timer is None:
            later = asyncio.get_running_loop().call_later
            self._timer = later(PAUSE_SECONDS, self._flush_all_but_the_end)

    def flush(self) -> None:
        """Note what was gathered."""
        self._stop_timer()
        text, length = "".join(self._pieces), self._length
        self._pieces.clear()
        self._length = 0
        self._note(text, length)

    def _flush_all_but_the_end(self) -> None:
        """Note what was gathered, without what may be the beginning of a secret that goes on."""
        self._timer = None
        text = self._redact("".join(self._pieces))
        if self._length > MAX_CHARACTERS:
            self.flush()
        elif len(text) > HELD_BACK:
            self._pieces[:] = [text[-HELD_BACK:]]
            self._length = HELD_BACK
            self._note(text[:-HELD_BACK], len(text) - HELD_BACK)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, text: str, length: int) -> None:
        if not text:
            return
        text = self._redact(text)[:MAX_CHARACTERS]
        if length > MAX_CHARACTERS:
            text += f" [… {length - MAX_CHARACTERS} more characters]"
        self._noted += 1
        body = AgentProgressed(role=self._turn.role, agent=self._agent, kind=self._kind, text=text)
        self._journal.note(self._turn.run_id, body)
