"""The function-calling loop and the conversations it continues: ask the model, keep the answer, perform its calls, until it is done.

Conversations are private files below the run's homes. A turn never changes a file: it writes a new one when
it is over. So a turn that is asked again after a crash begins where it began the first time.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from podium.agents.api.exchange import (
    ModelExchange,
    Rejected,
    Spending,
    model_settings,
    transcript_record,
)
from podium.agents.api.settings import Choice
from podium.agents.api.tool_calls import Calling, Offer, Performed, arguments_of, unanswered
from podium.agents.contract.json_objects import load_object
from podium.agents.contract.reply_text import bounded
from podium.agents.private_files import plain_name
from podium.core.decisions import digest_of, spent_since
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import Json
from podium.core.turns import Finish, ModelAnswer, RequestedCall, Turn, TurnStop
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.ports import HookDoor

_ID = re.compile(r"conv_[0-9a-f]{32}")


class Conversation:
    """The messages of a conversation, and the calls of its last answer that wait for a person."""

    def __init__(self, messages: Sequence[ModelMessage] = ()) -> None:
        self.messages = list(messages)

    def take_open_calls(self) -> tuple[list[ToolCallPart], list[ToolReturnPart]]:
        """The last answer's calls without a result, and the results there are, no longer part of it."""
        results: list[ToolReturnPart] = []
        if self.messages and isinstance(last := self.messages[-1], ModelRequest):
            results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
            self.messages.pop()
        answer = self.messages[-1] if self.messages else None
        calls = answer.tool_calls if isinstance(answer, ModelResponse) else []
        return unanswered(calls, results), results

    @property
    def last_prompt(self) -> str:
        for message in reversed(self.messages):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                    return part.content
        return ""


class Conversations:
    """The conversations of one agent in one run."""

    def __init__(self, homes: Path, run_id: str, agent: str, redact: Callable[[str], str]) -> None:
        """`redact` takes secrets out of the serialised files: the prompt or the model may say some."""
        self._agent = agent
        self._redact = redact
        self._homes = homes
        self._folder = homes / plain_name(run_id) / plain_name(agent) / "conversations"

    def load(self, session: str | None) -> Conversation:
        """None is a new one. Raises `BadInput` for an unknown one, `NotPossibleNow` for a damaged one."""
        if session is None:
            return Conversation()
        if not _ID.fullmatch(session):
            raise self._unknown(session)
        try:
            content = (self._folder / f"{session}.json").read_bytes()
            return Conversation(ModelMessagesTypeAdapter.validate_json(content))
        except FileNotFoundError:
            raise self._unknown(session) from None
        except (OSError, ValidationError, RecursionError) as error:
            raise NotPossibleNow(
                f"the conversation {session!r} of agent {self._agent!r} cannot be read "
                f"({type(error).__name__}); start a new one"
            ) from None

    def save(self, conversation: Conversation) -> str:
        """Keep it under a new id. On return it survives a crash."""
        for folder in (self._homes, self._folder.parent.parent, self._folder.parent, self._folder):
            make_private_folder(folder)
        session = f"conv_{secrets.token_hex(16)}"
        content = ModelMessagesTypeAdapter.dump_json(conversation.messages).decode()
        atomic_write(self._folder / f"{session}.json", self._redact(content).encode())
        return session

    def _unknown(self, session: str) -> BadInput:
        return BadInput(
            f"agent {self._agent!r} has no conversation {session[:80]!r} in this run; start a new one"
        )


MAX_STORED_BYTES = 1_000_000
"""A larger answer is asked for again after a crash."""
_PLAINLY = "asked_plainly"
"""Key of the reason why an answer was asked for without the provider's schema; kept with it, and never sent."""


@dataclass(frozen=True)
class ReceivedAnswer:
    """An answer of the model."""

    response: ModelResponse
    remembered: bool
    """It was given before a crash, and whoever follows the run has heard it then."""


class ModelAnswers:
    """Asks the model, or remembers what it said when this very turn was at work before."""

    def __init__(
        self,
        choice: Choice,
        offer: Offer,
        exchange: ModelExchange,
        spending: Spending,
        door: HookDoor,
        clean: Callable[[str], str],
    ) -> None:
        """`clean` takes secrets out of serialised JSON."""
        self._offer = offer
        self._exchange = exchange
        self._spending = spending
        self._door = door
        self._clean = clean
        self._number = 0
        self._taken = 0
        # Each request holds all of the one before it, so its digest goes on from that one's.
        self._digest = digest_of(
            [choice.provider, choice.model, dict(model_settings(choice)), offer.described]
        )
        self.warnings: list[str] = []

    async def next(self, conversation: Conversation, plain_prompt: str) -> ReceivedAnswer:
        """The answer to the conversation, durable by now. Raises an error of the tree.

        Messages that were there the last time are taken to be the same ones. A provider that does not take
        the schema is asked with the `plain_prompt` from then on, which says what form the answer has.
        """
        messages = conversation.messages
        number, self._number = self._number, self._number + 1
        self._spending.begin_request()
        request = self._request(messages)
        recorded = self._door.recorded_answer(number, request)
        response = None if recorded is None else _read(recorded.kept)
        if recorded is None or response is None:
            response = await self._ask(messages, number, request, plain_prompt)
            answer = ReceivedAnswer(response, remembered=False)
        else:
            self._remember(messages, response, recorded, plain_prompt)
            answer = ReceivedAnswer(response, remembered=True)
        self._spending.check()
        return answer

    def _request(self, messages: Sequence[ModelMessage]) -> str:
        """The same for the same request, also in another process."""
        for message in messages[self._taken :]:
            written = json.loads(self._clean(_written(message)))
            self._digest = digest_of([self._digest, written["kind"], _lasting(written["parts"])])
        self._taken = len(messages)
        return self._digest

    def _remember(
        self,
        messages: list[ModelMessage],
        response: ModelResponse,
        recorded: ModelAnswer,
        plain_prompt: str,
    ) -> None:
        self._exchange.note("remembered", transcript_record(response))
        self._spending.add_remembered(recorded.usage, counted=recorded.counted)
        if why := (response.metadata or {}).get(_PLAINLY):
            self._ask_plainly(messages, plain_prompt, str(why))

    async def _ask(
        self, messages: list[ModelMessage], number: int, request: str, plain_prompt: str
    ) -> ModelResponse:
        before = self._spending.used
        response = await self._send(messages, plain_prompt)
        spent = spent_since(before, self._spending.used)
        written = self._clean(_written(response))
        cleaned = _read(json.loads(written)) or response
        fits = len(written) <= MAX_STORED_BYTES
        answer = ModelAnswer(
            number=number,
            request=request,
            text=bounded(cleaned.text or ""),
            calls=tuple(self._requested_call(call, fits) for call in cleaned.tool_calls),
            model=cleaned.model_name or "",
            usage=spent,
            sizes=self._sizes(messages),
            kept=json.loads(written) if fits and _same_calls(cleaned, response) else None,
        )
        await self._door.record_answer(answer)
        return response

    def _sizes(self, messages: Sequence[ModelMessage]) -> dict[str, int]:
        """Measure the parts of the request, so that whoever wants it smaller knows which part is large."""
        requests = [message for message in messages if isinstance(message, ModelRequest)]
        prompts = [
            len(part.content)
            for message in requests
            for part in message.parts
            if isinstance(part, UserPromptPart) and isinstance(part.content, str)
        ]
        instructions = len((requests[-1].instructions if requests else None) or "")
        total = sum(len(_written(message)) for message in messages)
        return {
            "instructions": instructions,
            "tools": len(json.dumps(self._offer.described)),
            "prompt": sum(prompts),
            "history": max(0, total - sum(prompts) - instructions * len(requests)),
        }

    def _requested_call(self, call: ToolCallPart, fits: bool) -> RequestedCall:
        try:
            arguments: Json = arguments_of(call)
        except ValueError:
            arguments = call.args
        return RequestedCall(
            id=call.tool_call_id,
            tool=self._offer.real_name(call.tool_name),
            arguments=arguments if fits else None,
        )

    async def _send(self, messages: list[ModelMessage], plain_prompt: str) -> ModelResponse:
        try:
            return await self._send_once(messages)
        except Rejected as rejected:
            failure = rejected.failure
        if not self._offer.native:
            raise failure.error
        # Not every model that is said to take a schema takes this one, or takes it beside tools.
        why = str(failure.error)
        self._ask_plainly(messages, plain_prompt, why)
        try:
            response = await self._send_once(messages)
        except Rejected as rejected:
            raise rejected.failure.error from None
        response.metadata = {**(response.metadata or {}), _PLAINLY: why}
        return response

    async def _send_once(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        summary = {
            "messages": len(messages),
            "tools": self._offer.tools,
            "native": self._offer.native,
        }
        self._exchange.note("request", summary)
        return await self._exchange.ask(messages, self._offer.parameters)

    def _ask_plainly(self, messages: list[ModelMessage], plain_prompt: str, why: str) -> None:
        self._offer.ask_plainly()
        last = messages[-1]
        if isinstance(last, ModelRequest):
            parts = [
                replace(part, content=plain_prompt) if isinstance(part, UserPromptPart) else part
                for part in last.parts
            ]
            messages[-1] = replace(last, parts=parts)
        self.warnings.append(f"asked without the provider's own schema: {why}")


def _written(message: ModelMessage) -> str:
    # As a list of one: that is what the library reads back.
    return ModelMessagesTypeAdapter.dump_json([message]).decode()[1:-1]


def _read(stored: Json) -> ModelResponse | None:
    """The answer as it was kept. None: another version of the library wrote it."""
    try:
        (message,) = ModelMessagesTypeAdapter.validate_python([stored])
    except (ValidationError, ValueError):
        return None
    return message if isinstance(message, ModelResponse) else None


def _lasting(parts: list[dict[str, Json]]) -> Json:
    """The parts of a message without what is new each time it is made."""
    return [{name: value for name, value in part.items() if name != "timestamp"} for part in parts]


def _same_calls(cleaned: ModelResponse, response: ModelResponse) -> bool:
    """Return whether no secret was in its calls: without it they would be other calls after a crash."""
    return [call.args for call in cleaned.tool_calls] == [call.args for call in response.tool_calls]


_WITH_ERROR_FLAG = ("anthropic", "google")
"""Providers whose protocols tell an error from a result."""


@dataclass
class TalkResult:
    """The model's last answer, and warnings about it."""

    text: str = ""
    model: str = ""
    payload: Json = None
    done: Finish | None = None
    stopped: TurnStop | None = None
    warnings: list[str] = field(default_factory=list)


class ModelSession:
    """One turn of a conversation with a model."""

    def __init__(
        self,
        turn: Turn,
        choice: Choice,
        conversation: Conversation,
        offer: Offer,
        answers: ModelAnswers,
        exchange: ModelExchange,
        door: HookDoor,
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
        self._texts: list[str] = []
        self.result = TalkResult(model=choice.model)

    async def hold(self) -> TalkResult:
        """Continue until the model is done, reaches a limit, or waits for a person.

        What was done by then stands in the conversation; calls that wait stay open.
        """
        parts = await self._opening()
        while parts is not None:
            self._keep(parts)
            answer = await self._answers.next(self._conversation, self._turn.prompt)
            self._hear(answer.response)
            parts = await self._perform(answer)
        self.result.warnings[:0] = self._answers.warnings
        return self.result

    async def _opening(self) -> list[ModelRequestPart] | None:
        """Return the results of the calls that waited, and the prompt. None: they still wait, or were the last."""
        calls, results = self._conversation.take_open_calls()
        performed = await self._calling.perform(calls)
        parts: list[ModelRequestPart] = [*results, *performed.results]
        if self._is_over(performed):
            self._keep(parts)
            return None
        # A turn that goes on after an approval is asked in the words it was asked in before.
        prompt = self._turn.prompt_for(native=self._offer.native)
        if not calls or prompt != self._conversation.last_prompt:
            parts.append(UserPromptPart(prompt))
        return parts

    def _hear(self, answer: ModelResponse) -> None:
        self._conversation.messages.append(answer)
        self.result.text = answer.text or ""
        self._texts += [self.result.text] if self.result.text.strip() else []
        self.result.model = answer.model_name or self.result.model
        if answer.finish_reason == "length":
            self._warn("the answer was cut off at the provider's output limit")

    async def _perform(self, answer: ReceivedAnswer) -> list[ModelRequestPart] | None:
        """Return the next message for the model. None: the turn is over."""
        calls = answer.response.tool_calls
        if not calls:
            self._read_payload()
            return None
        performed = await self._calling.perform(calls, reported=answer.remembered)
        self._note(performed.results)
        if self._is_over(performed):
            self._keep([*performed.results])
            return None
        return [*performed.results]

    def _is_over(self, performed: Performed) -> bool:
        """Return whether the model is not asked again after these calls."""
        if performed.waiting:
            return True
        self.result.done, self.result.stopped = self._door.finished_with, self._door.stopped
        if self.result.stopped is not None:
            self.result.text = "\n\n".join(self._texts)
        return self.result.done is not None or self.result.stopped is not None

    def _note(self, results: list[ToolReturnPart]) -> None:
        for result in results:
            record = {
                "tool": result.tool_name,
                "id": result.tool_call_id,
                "content": result.content,
            }
            self._exchange.note("result", record)

    def _keep(self, parts: list[ModelRequestPart]) -> None:
        self._conversation.messages.append(
            ModelRequest(parts=parts, instructions=self._system_prompt)
        )

    def _read_payload(self) -> None:
        """Read the payload that the provider's schema gave. Text that is no JSON is left to whoever reads texts."""
        if not self._offer.native:
            return
        try:
            self.result.payload = load_object(self.result.text)
        except ValueError:
            self._warn("the answer does not match the schema that the provider was given")

    def _warn(self, warning: str) -> None:
        self.result.warnings.append(warning)
