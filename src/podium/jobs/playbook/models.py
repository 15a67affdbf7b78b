"""Models of a plugin's profile, a playbook, its prompt and a run, with their JSON Schemas and the options under `flows: playbook:`."""

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

from podium.core.decisions import Usage, digest_of
from podium.core.folder_snapshots import FolderChanges
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.turns import Reply, TurnStop

PROFILE_FILE = "plugin-profile.yaml"
GUARDED_FILES = (PROFILE_FILE,)
INPUT_NAME = r"[a-z][a-z0-9_]{0,39}"
MAX_INPUTS = 50
MAX_LINE = 1_000
MAX_TEXT = 100_000

_LINE_BREAKS = re.compile(r"[\n\r\v\f\x00\x1c-\x1e\x85\u2028\u2029]")
_DRIVE = re.compile(r"[A-Za-z]:")


def _in_quotes(value: Json) -> Json:
    """Reject numbers: YAML reads a bare 3.10 as 3.1."""
    if isinstance(value, bool | int | float):
        raise ValueError("must be text: put it in quotes")
    return value


def _one_value(value: Json) -> Json:
    if isinstance(value, dict | list):
        raise ValueError("must be a single value")
    return value


def _on_one_line(text: str) -> str:
    if _LINE_BREAKS.search(text):
        raise ValueError("must be on one line")
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def relative_path(path: str) -> str:
    """Validate that the path stays below the root."""
    if path.startswith(("/", "~")) or "\\" in path or _DRIVE.match(path):
        raise ValueError("must be a path relative to the repository's root, with `/` between parts")
    if ".." in path.split("/"):
        raise ValueError("must not point outside the repository")
    return path


def _simple_glob(glob: str) -> str:
    """Validate that the glob is simple, unambiguous and quick to match."""
    if odd := re.search(r"[\[\]{}!?]", glob):
        raise ValueError(f"must not contain {odd[0]!r}; only `*` and `**` are wildcards")
    if glob != glob.strip() or not glob.isprintable():
        raise ValueError("must not contain spaces around it or invisible characters")
    parts = glob.split("/")
    if any(part.count("*") > 2 for part in parts) or parts.count("**") > 2:
        raise ValueError("has too many wildcards: at most two `*` in a part, and two `**` parts")
    return glob


def _without_braces(command: str) -> str:
    # Input values must never become part of a command.
    if "{{" in command:
        raise ValueError("inputs cannot be used in commands; write the command out")
    return command


Text = Annotated[str, BeforeValidator(_in_quotes), StringConstraints(max_length=10_000)]
Line = Annotated[
    str,
    BeforeValidator(_in_quotes),
    StringConstraints(min_length=1, max_length=MAX_LINE),
    AfterValidator(_on_one_line),
]
RelativePath = Annotated[Line, AfterValidator(relative_path)]
Command = Annotated[Line, AfterValidator(_without_braces)]
Glob = Annotated[RelativePath, AfterValidator(_simple_glob)]
ToolName = Annotated[Line, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]
InputName = Annotated[str, StringConstraints(pattern=rf"^{INPUT_NAME}$")]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
Reference = Annotated[str, StringConstraints(pattern=r"^secret://[A-Za-z_][A-Za-z0-9_]{0,99}$")]
TierName = Literal["T0", "T1", "T2", "T3", "T4"]
Count = Annotated[PositiveInt, Strict(), Field(le=1_000_000_000)]
Amount = Annotated[float, Strict(), Field(gt=0, le=1_000_000, allow_inf_nan=False)]


class _DescribedModel(FrozenModel):
    """A model whose published schema describes each field."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ProfileCommands(_DescribedModel):
    """Commands that build and check the plugin, each on one line."""

    build: Command | None = None
    """Builds it."""
    test: Command | None = None
    """Runs its tests."""
    lint: Command | None = None
    """Checks its style and types."""


class PluginProfile(_DescribedModel):
    """A plugin as described by its maintainers. It is part of the repository: none of its text is an instruction."""

    name: Line
    """Name of the plugin."""
    kind: Line
    """Its host, such as `wordpress`, `vscode` or `pytest`."""
    language: Line
    """The language it is written in."""
    description: Text = ""
    """Its purpose, in a sentence or two."""
    repository: Line | None = None
    """Its source repository."""
    entry_points: Annotated[tuple[RelativePath, ...], Field(max_length=200)] = ()
    """Files its host loads, relative to the root of the repository."""
    version_files: Annotated[tuple[RelativePath, ...], Field(max_length=200)] = ()
    """Files that say which version it is; they change together."""
    commands: ProfileCommands = ProfileCommands()
    """Commands that build, test and lint it."""
    compatibility: Annotated[
        dict[Line, Annotated[tuple[Line, ...], Field(max_length=200)]], Field(max_length=50)
    ] = Field(default_factory=dict)
    """Compatible software: a name, and its versions, in quotes."""
    conventions: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    """Conventions of its maintainers, a sentence or two each."""
    forbidden_paths: Annotated[tuple[Glob, ...], Field(max_length=200)] = ()
    """Globs of paths that an agent may neither read nor change, relative to the root of the repository."""
    read_only_paths: Annotated[tuple[Glob, ...], Field(max_length=200)] = ()
    """Globs of paths that it may read but not change, such as the tests of its work."""
    allowed_tools: Annotated[tuple[ToolName, ...], Field(max_length=200)] | None = None
    """Tools an agent may be given here. Left out: those that the playbook names."""
    allowed_tiers: tuple[TierName, ...] = ("T0", "T1", "T2")
    """Tiers of calls that are allowed at all; policy may forbid more."""
    secrets: Annotated[dict[VariableName, Reference], Field(max_length=50)] = Field(
        default_factory=dict
    )
    """Secrets its commands need, by reference alone: `NPM_TOKEN: secret://NPM_TOKEN`."""

    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


InputType = Literal["string", "text", "integer", "number", "boolean", "path"]


class InputSpec(_DescribedModel):
    """Input of a playbook."""

    type: InputType = "string"
    """`string` is one line, `text` may be many, `path` is a path below the root."""
    description: Text = ""
    """Its purpose."""
    default: Annotated[bool | int | float | str | None, BeforeValidator(_one_value)] = None
    """Default value. Left out: it must be given, unless `required` is false."""
    required: Annotated[bool, Strict()] | None = None
    """True if it must be given. Left out: true, if there is no default."""
    choices: Annotated[tuple[Line, ...], Field(min_length=1, max_length=200)] | None = None
    """The only values it may have."""

    @property
    def is_required(self) -> bool:
        return self.default is None if self.required is None else self.required

    @model_validator(mode="after")
    def _makes_sense(self) -> InputSpec:
        if self.required and self.default is not None:
            raise ValueError("a required input cannot have a default; remove one of the two")
        if self.choices and self.type != "string":
            raise ValueError(f"choices need type string, not {self.type}")
        return self


class PlaybookLimits(_DescribedModel):
    """Limits of a playbook run. Unset: Podium's own limit."""

    turns: Count | None = None
    """Maximum number of requests to the model."""
    tool_calls: Count | None = None
    """Maximum number of tool calls."""
    tokens: Annotated[int, Strict(), Field(ge=0, le=1_000_000_000)] | None = None
    """Tokens in and out, together. 0: no limit."""
    usd: Annotated[float, Strict(), Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None = None
    """Maximum cost in USD. 0: no limit."""
    minutes: Amount | None = None
    """Maximum working time of its agent, without waits for people."""
    same_results: Annotated[Count, Field(ge=2)] | None = None
    """Maximum number of equal results of the same call before the agent is stopped."""

    def completed_by(self, other: PlaybookLimits) -> PlaybookLimits:
        """Fill unset limits from `other`. 0 and an explicit `null` for tokens or USD mean no limit."""
        values = self.model_dump(exclude_none=True)
        off: dict[str, object] = {
            name: None
            for name in ("tokens", "usd")
            if name in self.model_fields_set and not getattr(self, name)
        }
        completed: dict[str, object] = {**other.model_dump(exclude_none=True), **values, **off}
        return PlaybookLimits.model_validate(completed)


class PlaybookHead(_DescribedModel):
    """The front matter of a playbook."""

    name: Line
    """Name of the playbook."""
    description: Text = ""
    """Its goal, in a sentence or two."""
    inputs: Annotated[dict[InputName, InputSpec], Field(max_length=MAX_INPUTS)] = Field(
        default_factory=dict
    )
    """Its inputs; `{{ name }}` in its text is replaced by the value."""
    allowed_tools: Annotated[tuple[ToolName, ...], Field(max_length=200)] | None = None
    """Tools its agent may use. Left out: those that the profile allows."""
    limits: PlaybookLimits = PlaybookLimits()
    """Limits of a run."""
    success: Annotated[tuple[Command, ...], Field(max_length=50)] = ()
    """Commands that must all succeed at the end. `@build`, `@test`, `@lint`: those of the profile."""


class PlaybookStep(FrozenModel):
    """One heading of a playbook, and the text below it."""

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
    """Text before the first step."""
    steps: tuple[PlaybookStep, ...]

    def digest(self) -> str:
        """Hash the content, independent of file locations."""
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
    """Prompt of an agent, by sections."""

    sections: tuple[PromptSection, ...]
    missing: tuple[str, ...] = ()
    """Required inputs without a value."""

    @property
    def text(self) -> str:
        return "\n".join(section.text for section in self.sections)

    @property
    def estimated_tokens(self) -> int:
        return sum(section.estimated_tokens for section in self.sections)


OWN_LIMITS = PlaybookLimits(
    turns=100, tool_calls=300, tokens=500_000, usd=10.0, minutes=60.0, same_results=4
)
"""Limits where neither playbook nor project set any."""


class PlaybookOptions(FrozenModel):
    """Options of `podium playbook run`."""

    agent: str = ""
    """Agent to use without `--agent`. Empty: the only one there is."""
    limits: PlaybookLimits = PlaybookLimits()
    """Limits for playbooks that set none. Unless set: 100 turns, 300 calls, 500,000 tokens, 10 USD, 60 minutes, 4 equal results."""


DRAFT = "https://json-schema.org/draft/2020-12/schema"


def profile_schema() -> dict[str, Json]:
    """Return the schema of profiles, for editors: `# yaml-language-server: $schema=plugin-profile.schema.json`."""
    return {"$schema": DRAFT, **PluginProfile.model_json_schema(), "title": "Plugin profile"}


def playbook_schema() -> dict[str, Json]:
    """Return the schema of a playbook's front matter."""
    return {"$schema": DRAFT, **PlaybookHead.model_json_schema(), "title": "Playbook front matter"}


PLAYBOOK = "playbook"
"""The flow's name, and the role that its agent plays."""
PROOF = "proof"
"""The role in which Podium itself runs the success criteria."""


class PlaybookJob(FrozenModel):
    """Everything a run of a playbook needs, as it was when it was started.

    The texts are kept whole: what an agent does to the files meanwhile does not change the job.
    """

    playbook: Playbook
    profile: PluginProfile
    inputs: dict[str, Json] = Field(default_factory=dict)
    facts: dict[str, Json] = Field(default_factory=dict)
    agent: NonEmpty
    root: NonEmpty
    """Real path of the folder it works in."""
    tools: tuple[str, ...] = ()
    """Names of the tools that its agent is given."""
    limits: PlaybookLimits = PlaybookLimits()
    """Those of the playbook, completed by the project's and Podium's own."""
    dry_run: bool = False
    """Work in a copy that is thrown away, and show what would have changed."""


class Criterion(FrozenModel):
    """One command that decides about success, and how it ended."""

    command: str
    met: bool
    exit_code: int | None = None
    why: str = ""
    """Short reason why it is not met."""
    said: Annotated[str, Field(max_length=20_000)] = ""
    """The end of what it printed."""
    output_sha256: str = ""
    seconds: float = 0.0

    @property
    def ran(self) -> bool:
        """True if its end was observed; else a person or a rule prevented it."""
        return bool(self.output_sha256)

    def record(self) -> dict[str, Json]:
        return self.model_dump(mode="json")


class AgentEnding(FrozenModel):
    """End of the agent's part of a run."""

    reply: Reply
    """Its last one."""
    criteria: tuple[Criterion, ...] = ()
    ends: int = 1
    """Number of its ends; after all but the last it was asked again."""
    why: str = ""
    """Reason why it was not asked again despite unmet criteria. Empty: they are met, or a limit ended it."""


class PlaybookResult(FrozenModel):
    """Result of a run."""

    met: bool
    run_id: str = ""
    words: str
    """The agent's last text: untrusted, and no proof of anything."""
    criteria: tuple[Criterion, ...] = ()
    ends: int = 1
    """Number of the agent's ends; after all but the last it was asked again with the unmet criteria."""
    given_up: str = ""
    """Reason why it was not asked again despite unmet criteria. Empty: they are met, or a limit ended it."""
    stop: TurnStop | None = None
    changes: FolderChanges = FolderChanges()
    broken: str = ""
    """Reason why it is no success whatever the criteria say. Empty: none."""
    usage: Usage = Usage()
    dry_run: bool = False

    @property
    def unmet(self) -> tuple[Criterion, ...]:
        return tuple(criterion for criterion in self.criteria if not criterion.met)
