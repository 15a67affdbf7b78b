"""The function-calling loop: ask the model, perform its calls, tell it what came of them, until it is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from podium.agents.api.answers import Answers, Heard
from podium.agents.api.calling import Calling, Performed
from podium.agents.api.choosing import Choice
from podium.agents.api.conversation import Conversation
from podium.agents.api.exchange import Exchange
from podium.agents.api.offering import Offer
from podium.agents.contract.strict import load_object
from podium.domain.asking import Finish, Stop, Turn
from podium.domain.model import Json
from podium.ports import TurnDoor

_WITH_ERROR_FLAG = ("anthropic", "google")
"""Whose protocols tell an error from a result."""


@dataclass
class Said:
    """What the model said last, and what a person should know of it."""

    text: str = ""
    model: str = ""
    payload: Json = None
    done: Finish | None = None
    stopped: Stop | None = None
    warnings: list[str] = field(default_factory=list)


class Talk:
    """One turn of a conversation with a model."""

    def __init__(
        self,
        turn: Turn,
        choice: Choice,
        conversation: Conversation,
        offer: Offer,
        answers: Answers,
        exchange: Exchange,
        door: TurnDoor,
        system_prompt: str = "",
    ) -> None:
        self._turn = turn
        self._system_prompt = system_prompt or None
        self._conversation = conversation
        self._offer = offer
        self._answers = answers
        self._exchange = exchange
        self._door = door
        counts = turn.limits.same_results is None
        self._calling = Calling(
            choice.agent,
            door,
            offer,
            choice.settings,
            counts=counts,
            has_flag=choice.provider in _WITH_ERROR_FLAG,
        )
        self._words: list[str] = []
        self.said = Said(model=choice.model)

    async def hold(self) -> Said:
        """Until the model has said all, came to a limit, or waits for a person.

        What was done by then stands in the conversation; calls that wait stay open.
        """
        parts = await self._opening()
        while parts is not None:
            self._keep(parts)
            heard = await self._answers.next(self._conversation, self._turn.prompt)
            self._hear(heard.response)
            parts = await self._perform(heard)
        self.said.warnings[:0] = self._answers.warnings
        return self.said

    async def _opening(self) -> list[ModelRequestPart] | None:
        """What came of the calls that waited, and the prompt. None: they still wait, or were the last."""
        calls, results = self._conversation.take_open_calls()
        performed = await self._calling.perform(calls)
        parts: list[ModelRequestPart] = [*results, *performed.results]
        if self._is_over(performed):
            self._keep(parts)
            return None
        # A turn that goes on after an approval is asked in the words it was asked in before.
        prompt = self._turn.words(native=self._offer.native)
        if not calls or prompt != self._conversation.last_prompt:
            parts.append(UserPromptPart(prompt))
        return parts

    def _hear(self, answer: ModelResponse) -> None:
        self._conversation.messages.append(answer)
        self.said.text = answer.text or ""
        self._words += [self.said.text] if self.said.text.strip() else []
        self.said.model = answer.model_name or self.said.model
        if answer.finish_reason == "length":
            self._warn("the answer was cut off at the longest length the provider allows")

    async def _perform(self, heard: Heard) -> list[ModelRequestPart] | None:
        """What the model is told next. None: nothing, the turn is over."""
        calls = heard.response.tool_calls
        if not calls:
            self._read_payload()
            return None
        performed = await self._calling.perform(calls, told=heard.remembered)
        self._note(performed.results)
        if self._is_over(performed):
            self._keep([*performed.results])
            return None
        return [*performed.results]

    def _is_over(self, performed: Performed) -> bool:
        """Whether the model is not asked again after these calls."""
        if performed.waiting:
            return True
        self.said.done, self.said.stopped = self._door.finished_with, self._door.stopped
        if self.said.stopped is not None:
            self.said.text = "\n\n".join(self._words)
        return self.said.done is not None or self.said.stopped is not None

    def _note(self, results: list[ToolReturnPart]) -> None:
        for result in results:
            shown = {"tool": result.tool_name, "id": result.tool_call_id, "content": result.content}
            self._exchange.note("result", shown)

    def _keep(self, parts: list[ModelRequestPart]) -> None:
        self._conversation.messages.append(
            ModelRequest(parts=parts, instructions=self._system_prompt)
        )

    def _read_payload(self) -> None:
        """What the provider's schema gave. Text that is no JSON is left to whoever reads texts."""
        if not self._offer.native:
            return
        try:
            self.said.payload = load_object(self.said.text)
        except ValueError:
            self._warn("the provider did not keep to its own schema")

    def _warn(self, words: str) -> None:
        self.said.warnings.append(words)
