"""What the model is offered: the tools of the turn's door, and the form its answer shall have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel
from pydantic.errors import PydanticUserError
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from podium.agents.api.choosing import Choice
from podium.domain.gating import ToolSpec
from podium.domain.model import Json
from podium.domain.telling import offered_names, plain_name

LONGEST_NAME = 64


class Offer:
    """The request's parameters, and the registry's names for the tools in it."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._real = _names(specs)
        tools = [_definition(name, spec) for name, spec in self._real.items()]
        self.parameters = ModelRequestParameters(function_tools=tools)

    @property
    def native(self) -> bool:
        """Whether the provider holds the answer to a schema."""
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
            json_schema=schema, name=plain_name(contract.__name__, LONGEST_NAME)
        )
        self.parameters = replace(self.parameters, output_mode="native", output_object=form)

    def ask_plainly(self) -> None:
        """Want words, whatever was wanted before."""
        self.parameters = replace(self.parameters, output_mode="text", output_object=None)


def _combines(model: Model) -> bool:
    """Whether a Gemini takes tools and a schema in one request; the older ones refuse it."""
    return bool(dict(model.profile).get("google_supports_tool_combination", False))


def _names(specs: Sequence[ToolSpec]) -> dict[str, ToolSpec]:
    """Names that every provider takes → tool."""
    by_name = {spec.name: spec for spec in specs}
    offered = offered_names(by_name, LONGEST_NAME)
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
