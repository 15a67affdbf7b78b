"""Tools offered to the model, and the calls of an answer, performed one after the other through the turn's hook server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from podium.agents.api.settings import ApiSettings, Choice
from podium.core.decisions import CallOutcome, Effect, ToolSpec, canonical_json
from podium.core.errors import AgentRejected
from podium.core.model import Json
from podium.core.tool_replies import (
    cut_to,
    failure_text,
    offered_names,
    outcome_text,
    plain_name,
    refusal_text,
)
from podium.ports import HookDoor

MAX_NAME = 64


class Offer:
    """The request's parameters, and the registry's names for the tools in it."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._real = _names(specs)
        tools = [_definition(name, spec) for name, spec in self._real.items()]
        self.parameters = ModelRequestParameters(function_tools=tools)

    @property
    def native(self) -> bool:
        """True if the provider holds the answer to a schema."""
        return self.parameters.output_mode == "native"

    @property
    def tools(self) -> list[str]:
        return list(self._real)

    @property
    def described(self) -> Json:
        """All of it as JSON: what a model answers depends on what it is offered."""
        form = self.parameters.output_object
        tools = [
            [tool.name, tool.description, dict(tool.parameters_json_schema)]
            for tool in self.parameters.function_tools
        ]
        return [tools, None if form is None else form.json_schema]

    def real_name(self, offered: str) -> str:
        """The registry's name for a tool. A name nobody offered stays, for the door to refuse."""
        spec = self._real.get(offered)
        return offered if spec is None else spec.name

    def ask_natively(self, contract: type[BaseModel], model: Model, choice: Choice) -> None:
        """Want the answer by the provider's own schema, if it can with this contract and these tools."""
        schema = _schema(contract)
        if schema is None or not choice.settings.native_schema:
            return
        if not model.profile.get("supports_json_schema_output", False):
            return
        if choice.provider == "google" and self._real and not _combines(model):
            return
        # Anthropic closes every object, so that one with free names would always come back empty.
        if choice.provider == "anthropic" and _has_free_names(schema):
            return
        form = OutputObjectDefinition(
            json_schema=schema, name=plain_name(contract.__name__, MAX_NAME)
        )
        self.parameters = replace(self.parameters, output_mode="native", output_object=form)

    def ask_plainly(self) -> None:
        """Want words, whatever was wanted before."""
        self.parameters = replace(self.parameters, output_mode="text", output_object=None)


def _combines(model: Model) -> bool:
    """Return whether a Gemini takes tools and a schema in one request; the older ones refuse it."""
    return bool(dict(model.profile).get("google_supports_tool_combination", False))


def _names(specs: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """Names that every provider takes → tool."""
    by_name = {spec.name: spec for spec in specs}
    offered = offered_names(by_name, MAX_NAME)
    return {name: by_name[real] for name, real in offered.items()}


def _definition(name: str, spec: ToolSpec) -> ToolDefinition:
    schema = {"type": "object", "properties": {}, **spec.input_schema}
    return ToolDefinition(
        name=name, description=spec.description or spec.name, parameters_json_schema=schema
    )


def _schema(contract: type[BaseModel]) -> dict[str, Json] | None:
    try:
        return contract.model_json_schema()
    except (PydanticUserError, RecursionError):
        return None


def _has_free_names(schema: Json) -> bool:
    if isinstance(schema, list):
        return any(map(_has_free_names, schema))
    if not isinstance(schema, dict):
        return False
    free = schema.get("additionalProperties", False) is not False
    bare = schema.get("type") == "object" and "properties" not in schema
    return free or bare or any(map(_has_free_names, schema.values()))


MAX_PROGRESS_CHARACTERS = 200
_READ = "read_file"
_SHORT_CHARACTERS = 400
"""Lines that are shown again as they are."""


@dataclass
class Performed:
    """Results of the calls of one answer, in their order."""

    results: list[ToolReturnPart] = field(default_factory=list)
    waiting: bool = False
    """A person was asked about the call behind the last result. It and those after it did not run."""


class Calling:
    """Performs calls. Whatever comes of one goes back to the model as its result."""

    def __init__(
        self,
        agent: str,
        door: HookDoor,
        offer: Offer,
        settings: ApiSettings,
        *,
        counts: bool,
        has_flag: bool = True,
    ) -> None:
        """`counts`: notice here when the model goes in a circle, since the door does not. `has_flag`: the protocol has
        a flag for errors; where it has none, the library would hide the text in JSON."""
        self._has_flag = has_flag
        self._agent = agent
        self._counts = counts
        self._door = door
        self._offer = offer
        self._settings = settings
        self._last = ""
        self._repeats = 0
        self._read = set[str]()

    async def perform(self, calls: Sequence[ToolCallPart], *, reported: bool = False) -> Performed:
        """Stops at the first call that waits for a person. Raises `AgentRejected` on a circle.

        `told`: whoever follows the run has heard of these calls before a crash.
        """
        performed = Performed()
        for call in calls:
            result = await self._perform(call, reported)
            if result is None:
                performed.waiting = True
                break
            performed.results.append(result)
        return performed

    async def _perform(self, call: ToolCallPart, reported: bool) -> ToolReturnPart | None:
        name = self._offer.real_name(call.tool_name)
        try:
            arguments = arguments_of(call)
        except ValueError as error:
            problem = (
                f"the arguments are not a JSON object ({error}); nothing was done; call it again"
            )
            self._notify(f"{name}: {problem}", reported)
            return self._result(call, failure_text(problem), "failed")
        self._count(name, arguments)
        self._notify(f"{name} {canonical_json(arguments)[:MAX_PROGRESS_CHARACTERS]}", reported)
        answer = await self._door.perform(name, arguments)
        if answer.decision is Effect.ASK:
            return None
        if answer.outcome is None or not answer.allowed:
            text = refusal_text(answer.say, mistake=answer.mistake)
            return self._result(call, text, "failed" if answer.mistake else "denied")
        return self._ended(call, name, answer.outcome)

    def _ended(self, call: ToolCallPart, tool: str, outcome: CallOutcome) -> ToolReturnPart:
        longest = self._settings.longest_result_characters
        text = outcome_text(tool, outcome.ok, outcome.result, outcome.error, longest)
        if tool == _READ and outcome.ok:
            text = self._once(text)
        return self._result(call, text, "success" if outcome.ok else "failed")

    def _once(self, text: str) -> str:
        """The same lines are in the conversation already: sending them twice costs in every later request."""
        head, _, lines = text.partition("\n")
        if len(lines) < _SHORT_CHARACTERS:
            return text
        if text in self._read:
            return f"{head}\nUnchanged since you read these lines in this turn: see above."
        self._read.add(text)
        return text

    def _result(
        self, call: ToolCallPart, text: str, outcome: Literal["success", "failed", "denied"]
    ) -> ToolReturnPart:
        cut = cut_to(self._settings.longest_result_characters, text)
        flag = outcome if self._has_flag else "success"
        return ToolReturnPart(call.tool_name, cut, call.tool_call_id, outcome=flag)

    def _notify(self, text: str, reported: bool) -> None:
        if not reported:
            self._door.report_progress("tool", text)

    def _count(self, name: str, arguments: dict[str, Json]) -> None:
        """Notice a model that goes in a circle. Another call in between begins anew."""
        if not self._counts:
            return
        signature = f"{name} {canonical_json(arguments)}"
        self._repeats = self._repeats + 1 if signature == self._last else 1
        self._last = signature
        if self._repeats > self._settings.same_call_limit:
            raise AgentRejected(
                f"agent {self._agent!r} repeated the same call of {name!r} {self._repeats} times in "
                "a row and was stopped; check the results it got, and rephrase the task"
            )


def arguments_of(call: ToolCallPart) -> dict[str, Json]:
    """The arguments of a call. Raises `ValueError` for anything but a JSON object."""
    raw: str | dict[str, Json] | None = call.args
    if not raw:
        return {}
    try:
        value = json.loads(raw, parse_constant=_refuse) if isinstance(raw, str) else raw
        canonical_json(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}")
    return value


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not valid JSON")


def unanswered(
    calls: Sequence[ToolCallPart], results: Sequence[ToolReturnPart]
) -> list[ToolCallPart]:
    """The calls that no result is there for yet."""
    answered = {result.tool_call_id for result in results}
    return [call for call in calls if call.tool_call_id not in answered]
