"""The function-calling loop: ask the model, perform its calls, tell it what came of them, until it is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    UserPromptPart,
)
from pydantic_ai.models import Model

from podium.agents.api.calling import Calling
from podium.agents.api.choosing import Choice
from podium.agents.api.conversation import Conversation
from podium.agents.api.exchange import Exchange, Rejected
from podium.agents.api.offering import Offer
from podium.agents.contract.strict import load_object
from podium.domain.asking import Turn
from podium.domain.model import Json
from podium.ports import TurnDoor


@dataclass
class Said:
    """What the model said last, and what a person should know of it."""

    text: str = ""
    model: str = ""
    payload: Json = None
    warnings: list[str] = field(default_factory=list)


class Talk:
    """One turn of a conversation with a model."""

    def __init__(
        self,
        turn: Turn,
        choice: Choice,
        model: Model,
        conversation: Conversation,
        exchange: Exchange,
        door: TurnDoor,
    ) -> None:
        self._turn = turn
        self._conversation = conversation
        self._exchange = exchange
        self._offer = Offer(door.specs())
        if turn.contract is not None:
            self._offer.ask_natively(turn.contract, model, choice)
        self._calling = Calling(choice.agent, door, self._offer, choice.settings)
        self.said = Said(model=choice.model)

    async def hold(self) -> Said:
        """Until the model has said all, or waits for a person; then its open calls stay open."""
        parts = await self._opening()
        while parts is not None:
            answer = await self._ask(parts)
            parts = await self._perform(answer)
        return self.said

    async def _opening(self) -> list[ModelRequestPart] | None:
        """What came of the calls that waited, and the prompt. None: they still wait."""
        calls, results = self._conversation.take_open_calls()
        performed = await self._calling.perform(calls)
        parts: list[ModelRequestPart] = [*results, *performed.results]
        if performed.waiting:
            self._keep(parts)
            return None
        # A turn that goes on after an approval is asked in the words it was asked in before.
        if not calls or self._turn.prompt != self._conversation.last_prompt:
            parts.append(UserPromptPart(self._turn.prompt))
        return parts

    async def _ask(self, parts: list[ModelRequestPart]) -> ModelResponse:
        self._keep(parts)
        answer = await self._request()
        self._conversation.messages.append(answer)
        self.said.text = answer.text or ""
        self.said.model = answer.model_name or self.said.model
        if answer.finish_reason == "length":
            self._warn("the answer was cut off at the longest length the provider allows")
        return answer

    async def _request(self) -> ModelResponse:
        try:
            return await self._send()
        except Rejected as rejected:
            trouble = rejected.trouble
        if self._offer.native:
            # Not every model that is said to take a schema takes this one, or takes it beside tools.
            self._offer.ask_plainly()
            self._warn(f"asked without the provider's own schema: {trouble.error}")
            try:
                return await self._send()
            except Rejected as rejected:
                trouble = rejected.trouble
        raise trouble.error

    async def _send(self) -> ModelResponse:
        messages = self._conversation.messages
        summary = {
            "messages": len(messages),
            "tools": self._offer.tools,
            "native": self._offer.native,
        }
        self._exchange.note("request", summary)
        return await self._exchange.ask(messages, self._offer.parameters)

    async def _perform(self, answer: ModelResponse) -> list[ModelRequestPart] | None:
        """What the model is told next. None: nothing, the turn is over."""
        if not answer.tool_calls:
            self._read_payload()
            return None
        performed = await self._calling.perform(answer.tool_calls)
        for result in performed.results:
            shown = {"tool": result.tool_name, "id": result.tool_call_id, "content": result.content}
            self._exchange.note("result", shown)
        if performed.waiting:
            self._keep([*performed.results])
            return None
        return [*performed.results]

    def _keep(self, parts: list[ModelRequestPart]) -> None:
        self._conversation.messages.append(ModelRequest(parts=parts))

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
