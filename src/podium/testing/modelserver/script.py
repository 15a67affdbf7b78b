"""Models of a script: rules that map requests to answers, step by step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from podium.core.model import FrozenModel, Json, NonEmpty

ProtocolName = Literal["gemini", "responses", "chat", "anthropic"]
Finish = Literal["stop", "length", "refusal", "safety"]
Fault = Literal[
    "hang",
    "drop",
    "drop_before_headers",
    "truncate",
    "invalid_stream",
    "invalid_json",
    "invalid_utf8",
    "error_event",
    "context_overflow",
    "bad_key",
]

MAX_WAIT_SECONDS = 3600.0


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    return text


Expression = Annotated[str, AfterValidator(_expression)]
Seconds = Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS)]


class ToolCall(FrozenModel):
    """A tool the model calls by the name that the program under test gives it."""

    name: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)


class CustomToolCall(FrozenModel):
    """A tool whose input is plain text, as OpenAI's custom tools are."""

    name: NonEmpty
    input: str


class FileWrite(FrozenModel):
    """A file the model writes, with whatever tool for that is offered."""

    path: NonEmpty
    content: str


class StepUsage(FrozenModel):
    """Tokens the answer says were used. None: about one for four characters."""

    input: int | None = Field(default=None, ge=0)
    """All tokens of the request, cached ones among them."""
    output: int | None = Field(default=None, ge=0)
    cached: int = Field(default=0, ge=0)


class ScriptStep(FrozenModel):
    """One answer of the model, or one way to fail. A plain text stands for `text:`."""

    text: str = ""
    thinking: str = ""
    tools: tuple[ToolCall, ...] = ()
    custom_tool: CustomToolCall | None = None
    run: str | None = None
    """A shell command, given to the shell tool among those the request offers."""
    write: FileWrite | None = None
    read: str | None = None
    """Path of a file, given to the reading tool among those the request offers."""
    payload: dict[str, Json] | None = None
    """An object the model answers with: by the tool for that where one is offered, else as JSON behind the text."""
    usage: StepUsage = StepUsage()
    finish: Finish = "stop"
    delay_seconds: Seconds = 0.0
    """Silence before the first byte."""
    chunk_characters: int | None = Field(default=None, ge=1)
    """Characters per stream event. None: at least two events, of 80 at most."""
    drip_seconds: Seconds = 0.0
    """Silence between two events of a stream."""
    status: int | None = Field(default=None, ge=400, le=599)
    """Fail with this HTTP status, in the protocol's own words."""
    message: str = ""
    """Message of the failure. Empty: the provider's own."""
    retry_after: float | None = Field(default=None, ge=0)
    """Seconds after which it is worth trying again: a header, and Gemini's RetryInfo."""
    headers: dict[str, str] = Field(default_factory=dict)
    """More headers of the answer."""
    fault: Fault | None = None
    flood_bytes: int | None = Field(default=None, ge=1, le=10_000_000_000)
    """Answer with so many bytes of text."""
    then: str = ""
    """The text at the end of a flood."""

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.then and self.flood_bytes is None:
            raise ValueError("`then` ends a flood; set `flood_bytes` too, or use `text`")
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9-]+", name) or not re.fullmatch(r"[ -~]*", value):
                raise ValueError(f"{name!r} is not a valid header")
        if not self.model_fields_set:
            raise ValueError("the step is empty; use `text: ''` for an empty answer")
        return self

    @property
    def call_count(self) -> int:
        """Count the tool results that come back when all its calls are answered."""
        calls = (self.custom_tool, self.run, self.write, self.read)
        return len(self.tools) + sum(call is not None for call in calls)


class ScriptRule(FrozenModel):
    """Steps, and the requests they are for. A condition that is not given fits every request."""

    name: str = ""
    """Name in the log. Empty: its marker, or its position."""
    marker: str = Field(default="", pattern=r"^(\w([\w.-]*\w)?)?$")
    """The newest user text that carries any `SCRIPT:<name>` carries this one."""
    when: Expression = ""
    """A regular expression found in the newest prompt. `{{name}}` in `text` and `then` is its group `name`."""
    model: Expression = ""
    """A regular expression found in the model's name."""
    protocol: ProtocolName | None = None
    offers_tools: bool | None = None
    """True: only requests that offer tools, which side requests of a CLI do not."""
    each_time: bool = False
    """Count steps by requests, not by tool results: the next request gets the next step."""
    steps: tuple[ScriptStep, ...] = Field(min_length=1)


class Script(FrozenModel):
    """Rules, tried in order, and what every other request gets."""

    rules: tuple[ScriptRule, ...] = ()
    default: ScriptRule | None = None

    @classmethod
    def by_marker(
        cls, steps: Mapping[str, Sequence[ScriptStep | Mapping[str, Json] | str]]
    ) -> Script:
        """A script with one rule for each `SCRIPT:<name>`."""
        rules = [{"marker": name, "steps": list(rule_steps)} for name, rule_steps in steps.items()]
        return cls.model_validate({"rules": rules})

    @property
    def markers(self) -> list[str]:
        return [rule.marker for rule in self.rules if rule.marker]
