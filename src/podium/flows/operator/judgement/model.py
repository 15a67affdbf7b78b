"""A model reads the message: any agent behind the port, asked one question with a contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import BadInput, Interrupted, PodiumError, ReplyInvalid, TimedOut
from podium.domain.gating import Usage
from podium.domain.model import Json, NonEmpty
from podium.domain.operating import Intent, Message, Reading, Urgency, Wish
from podium.domain.packs import Pack
from podium.flows.operator.judgement.model_prompt import prompt_for
from podium.ports import Agent, Classifier

MOST_TOOLS = 80
"""Of a longer registry the model is shown those that fit the message best."""
MOST_CALLS = 50
LARGEST_CALLS = 100_000
"""Characters of all calls together. A message is shorter, so more was not read in it."""
LONGEST_WORDS = 500
READING_LIMITS = TurnLimits(seconds=20.0, turns=4)
"""What one reading may take unless the agent's own settings say otherwise: a person waits for it."""
ROLE = "classifier"
"""What the turn is called, where an agent keeps things by run and role."""

Ranking = Callable[[str], list[str]]
"""The names of tools and skills, those that fit a text best first."""

_READ_BY: ContextVar[tuple[object, str] | None] = ContextVar("read_by", default=None)
"""Which classifier of two gave the latest reading of this task, and for whom."""


class ModelCall(BaseModel):
    """A tool that a model understood. What else it says of one, such as a tier, is not heard."""

    model_config = ConfigDict(extra="ignore")

    tool: Annotated[NonEmpty, Field(max_length=200)]
    arguments: dict[str, Json] = Field(default_factory=dict)


class ModelReading(BaseModel):
    """The form of a model's answer. It has no place for a tier or an approval: both are Podium's."""

    model_config = ConfigDict(extra="ignore")

    intent: Intent
    domain: str = "system"
    urgency: Urgency = Urgency.NORMAL
    calls: list[ModelCall] = Field(default_factory=list, max_length=MOST_CALLS)
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)
    reasoning: str = ""
    question: str = ""

    @field_validator("calls")
    @classmethod
    def _bounded(cls, calls: list[ModelCall]) -> list[ModelCall]:
        size = sum(len(json.dumps(call.arguments)) for call in calls)
        if size > LARGEST_CALLS:
            raise ValueError(f"the calls take {size} characters, and {LARGEST_CALLS} are allowed")
        return calls


class ModelClassifier:
    """Reads messages with an agent. What it gives is what the model said, names and all, unchecked."""

    def __init__(
        self,
        agent: Agent,
        pack: Pack,
        *,
        workspace: str = ".",
        shortlist: Ranking | None = None,
        limits: TurnLimits = READING_LIMITS,
    ) -> None:
        """`agent` holds its replies to the contract of a turn; `workspace` is a folder it may work in."""
        self._agent = agent
        self._pack = pack
        self._workspace = workspace
        self._shortlist = shortlist
        self._limits = limits
        self.usage = Usage()
        """What all readings so far have used."""

    @property
    def name(self) -> str:
        return self._agent.name

    async def read(self, message: Message) -> Reading:
        """As the port has it; `ReplyInvalid` when two answers did not fit the contract."""
        turn = Turn(
            run_id=ROLE,
            step_key=ROLE,
            role=ROLE,
            prompt=prompt_for(message, self._pack, self._names(message.text)),
            workspace=self._workspace,
            limits=self._limits,
            allowed_tools=(),
            contract=ModelReading,
            provenance=message.provenance,
        )
        reply = await self._asked(turn)
        return _reading(_payload(reply, self.name))

    async def _asked(self, turn: Turn) -> Reply:
        try:
            # Loading a provider's library comes before the turn's own clock starts.
            async with asyncio.timeout(self._limits.seconds) as limit:
                reply = await self._agent.ask(turn)
        except TimeoutError:
            if not limit.expired():
                raise
            self._spend(Usage(turns=1, complete=False))
            seconds = self._limits.seconds
            raise TimedOut(f"agent {self.name!r} gave no answer within {seconds:g} s") from None
        except PodiumError as error:
            self._spend(error.usage or Usage(complete=False))
            raise
        self._spend(reply.usage)
        return reply

    def _spend(self, used: Usage) -> None:
        self.usage = self.usage.plus(used)

    def _names(self, text: str) -> list[str] | None:
        """What the model is told of. None: the whole registry."""
        registry = self._pack.registry
        every = [*(tool.name for tool in registry.tools), *(each.name for each in registry.skills)]
        if len(every) <= MOST_TOOLS:
            return None
        best = self._shortlist(text) if self._shortlist else every
        return best[:MOST_TOOLS]


class WithFallback:
    """A model's reading; where it gave none, the other's, which says so. Never the other way round."""

    def __init__(self, model: ModelClassifier, other: Classifier) -> None:
        self._model = model
        self._other = other

    @property
    def name(self) -> str:
        """Of whoever gave the latest reading in this task; the model's, where none was given yet."""
        latest = _READ_BY.get()
        return latest[1] if latest and latest[0] is self else self._model.name

    @property
    def usage(self) -> Usage:
        """What all readings so far have used, those that failed too."""
        return self._model.usage

    async def read(self, message: Message) -> Reading:
        """Raises `BadInput` and `Interrupted`, which another reading does not mend."""
        _READ_BY.set((self, self._model.name))
        try:
            return await self._model.read(message)
        except (BadInput, Interrupted):
            raise
        except PodiumError as trouble:
            why = (
                f"read by {self._other.name!r}, because the model gave no answer: {_short(trouble)}"
            )
        _READ_BY.set((self, self._other.name))
        reading = await self._other.read(message)
        said = f"{reading.reasoning.rstrip('.')} ({why})" if reading.reasoning else why
        return reading.model_copy(update={"reasoning": said})


def _payload(reply: Reply, agent: str) -> ModelReading:
    if reply.payload is None:
        # It asked for a tool that waits for a person. Nobody gives it one for reading.
        raise ReplyInvalid(f"agent {agent!r} ended its turn without a reading")
    return ModelReading.model_validate(reply.payload)


def _reading(said: ModelReading) -> Reading:
    wishes = tuple(Wish(tool=call.tool, arguments=call.arguments) for call in said.calls)
    acts = said.intent is not Intent.REFUSE
    return Reading(
        intent=said.intent,
        domain=_line(said.domain)[:80] or "system",
        urgency=said.urgency,
        wishes=wishes if acts else (),
        confidence=said.confidence,
        reasoning=_line(said.reasoning),
        question=_line(said.question) if said.intent is Intent.CLARIFY else "",
        candidates=tuple(dict.fromkeys(wish.tool for wish in wishes)),
    )


def _short(trouble: PodiumError) -> str:
    return _line(str(trouble))[:200].rstrip(". ")


def _line(words: str) -> str:
    """On one line, so that nothing in it can look like a block of an answer; printable and short."""
    plain = "".join(
        letter if letter.isprintable() else " " for letter in words[: LONGEST_WORDS * 4]
    )
    return " ".join(plain.split())[:LONGEST_WORDS]
