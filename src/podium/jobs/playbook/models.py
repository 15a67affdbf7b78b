"""Models of a plugin's profile, a playbook and its prompt, with their JSON Schemas and the options under `flows: playbook:`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    Strict,
    StringConstraints,
    model_validator,
)

from podium.core.decisions import digest_of
from podium.core.model import FrozenModel, Json

PROFILE_FILE = "plugin-profile.yaml"
GUARDED_FILES = (PROFILE_FILE,)
INPUT_NAME = r"[a-z][a-z0-9_]{0,39}"
MAX_INPUTS = 50
MAX_LINE = 1_000
MAX_TEXT = 100_000

_LINE_BREAKS = re.compile(r"[\n\r\v\f\x00\x1c-\x1e\x85\u2028\u2029]")
_DRIVE = re.compile(r"[A-Za-z]:")


def _in_quotes(value: Json) -> Json:
    """YAML reads a bare 3.10 as 3.1, and the zero is lost before anybody can object."""
    if isinstance(value, bool | int | float):
        raise ValueError("must be text: put it in quotes")
    return value


def _one_value(value: Json) -> Json:
    if isinstance(value, dict | list):
        raise ValueError("must be one value")
    return value


def _on_one_line(text: str) -> str:
    if _LINE_BREAKS.search(text):
        raise ValueError("must be on one line")
    if not text.strip():
        raise ValueError("says nothing")
    return text


def beneath(path: str) -> str:
    """The path, if it can only lead to places beneath the root."""
    if path.startswith(("/", "~")) or "\\" in path or _DRIVE.match(path):
        raise ValueError(
            "must be a path from the root of the repository on, with `/` between parts"
        )
    if ".." in path.split("/"):
        raise ValueError("must not lead out of the repository")
    return path


def _simple_glob(glob: str) -> str:
    """The glob, if it means what people read in it, and a path is held against it in no time."""
    if odd := re.search(r"[\[\]{}!?]", glob):
        raise ValueError(f"knows `*` and `**` alone, and {odd[0]!r} would mean just that character")
    if glob != glob.strip() or not glob.isprintable():
        raise ValueError("must have no blanks around it and no hidden characters")
    parts = glob.split("/")
    if any(part.count("*") > 2 for part in parts) or parts.count("**") > 2:
        raise ValueError("has too many stars: at most two in a part, and two parts `**`")
    return glob


def _without_braces(command: str) -> str:
    # What a person hands in must never become part of a command.
    if "{{" in command:
        raise ValueError("inputs are not put into commands; write the command out")
    return command


Text = Annotated[str, BeforeValidator(_in_quotes), StringConstraints(max_length=10_000)]
Line = Annotated[
    str,
    BeforeValidator(_in_quotes),
    StringConstraints(min_length=1, max_length=MAX_LINE),
    AfterValidator(_on_one_line),
]
Place = Annotated[Line, AfterValidator(beneath)]
Command = Annotated[Line, AfterValidator(_without_braces)]
Glob = Annotated[Place, AfterValidator(_simple_glob)]
ToolName = Annotated[Line, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
InputName = Annotated[str, StringConstraints(pattern=rf"^{INPUT_NAME}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Reference = Annotated[str, StringConstraints(pattern=r"^secret://[A-Za-z_][A-Za-z0-9_]{0,99}$")]
TierWord = Literal["T0", "T1", "T2", "T3", "T4"]
Count = Annotated[PositiveInt, Strict(), Field(le=1_000_000_000)]
Amount = Annotated[float, Strict(), Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class _DescribedModel(FrozenModel):
    """A noun whose published schema says what each field means."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ProfileCommands(_DescribedModel):
    """How the plugin is built and looked at, each a command on one line."""

    build: Command | None = None
    """Builds it."""
    test: Command | None = None
    """Runs its tests."""
    lint: Command | None = None
    """Looks at its style and types."""


class PluginProfile(_DescribedModel):
    """A plugin as those who maintain it know it. It lies in the repository: none of its words command anybody."""

    name: Line
    """What the plugin is called."""
    kind: Line
    """What it plugs into, such as `wordpress`, `vscode` or `pytest`."""
    language: Line
    """The language it is written in."""
    description: Text = ""
    """What it is for, in a sentence or two."""
    repository: Line | None = None
    """Where its source is kept."""
    entry_points: Annotated[tuple[Place, ...], Field(max_length=200)] = ()
    """Files its host loads, from the root of the repository on."""
    version_files: Annotated[tuple[Place, ...], Field(max_length=200)] = ()
    """Files that say which version it is; they change together."""
    commands: ProfileCommands = ProfileCommands()
    """How it is built, tested and linted."""
    compatibility: Annotated[
        dict[Line, Annotated[tuple[Line, ...], Field(max_length=200)]], Field(max_length=50)
    ] = Field(default_factory=dict)
    """What it is known to work with: a name, and the versions of it, in quotes."""
    conventions: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    """How its people work, a sentence or two each."""
    forbidden_paths: Annotated[tuple[Glob, ...], Field(max_length=200)] = ()
    """Globs of what an agent may neither read nor change, from the root of the repository on."""
    read_only_paths: Annotated[tuple[Glob, ...], Field(max_length=200)] = ()
    """Globs of what it may read and not change, such as the tests that its work is held to."""
    allowed_tools: Annotated[tuple[ToolName, ...], Field(max_length=200)] | None = None
    """Tools an agent may be given here. Left out: those that the playbook names."""
    allowed_tiers: tuple[TierWord, ...] = ("T0", "T1", "T2")
    """Risks of calls that are let pass here at all; policy may forbid more."""
    secrets: Annotated[dict[VariableName, Reference], Field(max_length=50)] = Field(
        default_factory=dict
    )
    """Secrets its commands need, by reference alone: `NPM_TOKEN: secret://NPM_TOKEN`."""

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


InputType = Literal["string", "text", "integer", "number", "boolean", "path"]


class InputSpec(_DescribedModel):
    """What a playbook wants to know before it begins."""

    type: InputType = "string"
    """`string` is one line, `text` may be many, `path` leads to a place beneath the root."""
    description: Text = ""
    """What it is for."""
    default: Annotated[bool | int | float | str | None, BeforeValidator(_one_value)] = None
    """What it is when nobody says. Left out: it must be given, unless `required` is false."""
    required: Annotated[bool, Strict()] | None = None
    """Whether it must be given. Left out: yes, if there is no default."""
    choices: Annotated[tuple[Line, ...], Field(min_length=1, max_length=200)] | None = None
    """The only values it may have."""

    @property
    def must_be_given(self) -> bool:
        return self.default is None if self.required is None else self.required

    @model_validator(mode="after")
    def _makes_sense(self) -> InputSpec:
        if self.required and self.default is not None:
            raise ValueError("what must be given needs no default; leave out one of the two")
        if self.choices and self.type != "string":
            raise ValueError(f"choices are for type string, and this one is {self.type}")
        return self


class PlaybookLimits(_DescribedModel):
    """Limits of a playbook run. Unset: Podium's own limit."""

    turns: Count | None = None
    """How often the model may be asked."""
    tool_calls: Count | None = None
    """How many calls it may make."""
    tokens: Annotated[int, Strict(), Field(ge=0, le=1_000_000_000)] | None = None
    """Tokens in and out, together. 0: no limit."""
    usd: Annotated[float, Strict(), Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """What it may cost. 0: no limit."""
    minutes: Amount | None = None
    """How long its agent may work, waits for people not counted."""
    same_results: Annotated[Count, Field(ge=2)] | None = None
    """How often the same call may come to the same result before the agent is stopped."""

    def completed_by(self, other: PlaybookLimits) -> PlaybookLimits:
        """With the other's limits where there are none here. 0 and a written `null` for tokens or USD mean none at all."""
        given = self.model_dump(exclude_none=True)
        off: dict[str, object] = {
            name: None
            for name in ("tokens", "usd")
            if name in self.model_fields_set and not getattr(self, name)
        }
        completed: dict[str, object] = {**other.model_dump(exclude_none=True), **given, **off}
        return PlaybookLimits.model_validate(completed)


class PlaybookHead(_DescribedModel):
    """The front matter of a playbook."""

    name: Line
    """What the playbook is called."""
    description: Text = ""
    """What it achieves, in a sentence or two."""
    inputs: Annotated[dict[InputName, InputSpec], Field(max_length=MAX_INPUTS)] = Field(
        default_factory=dict
    )
    """What it wants to know; `{{ name }}` in its text stands for the value."""
    allowed_tools: Annotated[tuple[ToolName, ...], Field(max_length=200)] | None = None
    """Tools its agent may use. Left out: those that the profile allows."""
    limits: PlaybookLimits = PlaybookLimits()
    """Where a run of it ends."""
    success: Annotated[tuple[Command, ...], Field(max_length=50)] = ()
    """Commands that must all succeed at the end. `@build`, `@test`, `@lint`: those of the profile."""


class PlaybookStep(FrozenModel):
    """One heading of a playbook, and what stands beneath it."""

    title: str
    text: str = ""
    """Markdown whose own headings, if any, are deeper than the step's. Holds `{{ name }}` as written."""
    file: str = ""
    line: int = 0


class Playbook(FrozenModel):
    """A playbook as loaded, with what it includes in its place."""

    head: PlaybookHead
    title: str = ""
    introduction: str = ""
    """What stands before the first step."""
    steps: tuple[PlaybookStep, ...]

    def digest(self) -> str:
        """Of what it says, wherever it lies."""
        return digest_of(self.model_dump(mode="json", exclude={"steps": {"__all__": {"file"}}}))


CHARACTERS_PER_TOKEN = 4
"""About so many in English prose and code. Every model counts otherwise: this is an estimate."""


class PromptSection(FrozenModel):
    """A part of a prompt under one heading."""

    name: str
    text: str

    @property
    def estimated_tokens(self) -> int:
        return -(-len(self.text) // CHARACTERS_PER_TOKEN)


class PlaybookPrompt(FrozenModel):
    """What an agent is sent, and of which parts it is made."""

    sections: tuple[PromptSection, ...]
    missing: tuple[str, ...] = ()
    """Inputs that must be given before it can be sent."""

    @property
    def text(self) -> str:
        return "\n".join(section.text for section in self.sections)

    @property
    def estimated_tokens(self) -> int:
        return sum(section.estimated_tokens for section in self.sections)


OWN_LIMITS = PlaybookLimits(
    turns=100, tool_calls=300, tokens=500_000, usd=10.0, minutes=60.0, same_results=4
)
"""What holds where neither playbook nor project say anything."""


class PlaybookOptions(FrozenModel):
    """Options of `podium playbook run`."""

    agent: str = ""
    """Agent to use without `--agent`. Empty: the only one there is."""
    limits: PlaybookLimits = PlaybookLimits()
    """Limits for playbooks that set none. Unless set: 100 turns, 300 calls, 500,000 tokens, 10 USD, 60 minutes, 4 equal results."""


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, Json]:
    """For editors: `# yaml-language-server: $schema=plugin-profile.schema.json` as the first line."""
    return {"$schema": DRAFT, **PluginProfile.model_json_schema(), "title": "Plugin profile"}


def playbook_schema() -> dict[str, Json]:
    """Of what stands between the two `---` at the top of a playbook."""
    return {"$schema": DRAFT, **PlaybookHead.model_json_schema(), "title": "Playbook front matter"}
