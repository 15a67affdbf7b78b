"""Packs: a tool registry with its tools, domains and skills, and the domain table."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer

from podium.core.decisions import Tier, ToolSpec
from podium.core.model import FrozenModel, Json, NonEmpty


def _tier_named(value: Json) -> Json:
    return Tier[value] if isinstance(value, str) and value in Tier.__members__ else value


TierName = Annotated[
    Tier,
    BeforeValidator(_tier_named),
    PlainSerializer(str, return_type=Literal["T0", "T1", "T2", "T3", "T4"], when_used="json"),
]
"""A tier that is written as `T2`."""

ToolName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$", max_length=64)]
"""Domain and verb, such as `quote.finalize`. The dot keeps pack tools apart from Podium's own."""


class DomainRow(FrozenModel):
    """An operational domain: which tools belong to it, and how risky they are at least."""

    name: NonEmpty
    description: str = ""
    patterns: tuple[NonEmpty, ...]
    """Globs over tool names. Of all rows' patterns the most specific one that fits has the say."""
    default_tier: TierName
    words: tuple[NonEmpty, ...] = ()
    """People's words for the things of this domain, such as `lead`, `enquiry`."""


class TierExample(FrozenModel):
    """A tool whose lowest tier is written down by name; more specific than any pattern."""

    tool: ToolName
    tier: TierName


class Utterance(FrozenModel):
    """A sentence that means this tool, with what should be read from it."""

    say: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)


class Dependency(FrozenModel):
    """Another tool that comes first when both are in a plan."""

    tool: ToolName
    reason: NonEmpty = "Required predecessor"
    fills: dict[str, str] = Field(default_factory=dict)
    """Argument of this tool → field of that tool's result."""


class Estimate(FrozenModel):
    """A rough estimate of cost and time."""

    usd: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(usd=self.usd + other.usd, seconds=self.seconds + other.seconds)


class SaferAlternative(FrozenModel):
    """A tool that gets nearly the same with less risk."""

    tool: ToolName
    because: NonEmpty


class RowCheck(FrozenModel):
    """Proof of a tool's effect: a row that must be there afterwards, or must not."""

    table: NonEmpty
    where: dict[str, Json]
    """Column → value. `$arg.NAME` and `$result.NAME` stand for an argument and a field of the result."""
    columns: tuple[NonEmpty, ...] = ()
    """Columns of the row that are read for the receipt."""
    expect: dict[str, Json] = Field(default_factory=dict)
    """Column → the value it must have, written like those of `where`."""
    absent: bool = False
    """True: no such row may be there."""


class PackTool(FrozenModel):
    """One tool as its registry has it. `handler` says who performs it."""

    name: ToolName
    domain: str = ""
    """Empty: the one whose pattern fits best."""
    description: NonEmpty
    examples: tuple[Utterance, ...] = ()
    synonyms: tuple[NonEmpty, ...] = ()
    """Other words for what it does, such as `lodge inspection`."""
    opening_verbs: tuple[NonEmpty, ...] = ()
    """Verbs such as `implement`: a command that begins with one is for this tool when none fits it better."""
    input_schema: dict[str, Json]
    """A JSON Schema object. A property's `x-kind` says what to look for in a message: phone, email,
    money, date, name, suburb, address, text, number, choice or `id:lead`; `x-ask` what to ask for it;
    `x-composed` whether a model may word it; `x-resolve` where it comes from when nobody says it."""
    tier: TierName
    receipt_fields: tuple[NonEmpty, ...]
    depends_on: tuple[Dependency, ...] = ()
    idempotency_key: Literal["call", "none"] = "none"
    """`call`: the handler does a thing once under the call's key, so a crash in between is no doubt."""
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600)
    undo: ToolName | None = None
    """The tool that reverses this one. None: what it did cannot be taken back."""
    undo_until: str = ""
    """How long that is possible, such as `until it is accepted`. It is shown to people before they approve."""
    preview: str = ""
    """`module:function` that tells what a call would send: (arguments, scope) → `to`, `subject`, `amount`, `text`,
    `attachments`, each if there is one. It changes nothing."""
    safer_alternative: SaferAlternative | None = None
    approvals: tuple[NonEmpty, ...] = ()
    """Groups that must approve, in order."""
    experimental: bool = False
    """True: no plan with it passes the quality gate."""
    cost: Estimate = Estimate()
    verify: tuple[RowCheck, ...] = ()
    handler: str | dict[str, Json]
    """`module:function` in the pack's folder, {"http": …} or {"mcp": …}; in Podium's own packs {"service": …}."""

    @property
    def required(self) -> tuple[str, ...]:
        """Arguments that must be given, in the schema's order."""
        return tuple(self.input_schema.get("required", ()))

    @property
    def properties(self) -> dict[str, dict[str, Json]]:
        properties: dict[str, dict[str, Json]] = self.input_schema.get("properties", {})
        return properties

    def spec(self, tier: Tier) -> ToolSpec:
        """The tool as the gate and the toolbox know it; `tier` is the computed one."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            tier=tier,
            receipt_fields=(*self.receipt_fields, "verification", "undoes"),
            idempotent=self.idempotency_key == "call",
            timeout_seconds=self.timeout_seconds,
            undo=self.undo,
            approvals=self.approvals,
        )


class SkillStep(FrozenModel):
    """One part of a skill.

    In arguments `$message.NAME` stands for what was read from the message, `$context.PATH` for a part
    of the context, `$each.PATH` for a part of the element at hand, and `$ID.FIELD` for a field of the
    result of the step called ID; of a step that ran for each element, for the list of them.
    """

    id: NonEmpty
    tool: ToolName
    arguments: dict[str, Json] = Field(default_factory=dict)
    each: str = ""
    """`$context.PATH` of a list: the step is planned once for each of its elements."""
    when: str = ""
    """`$context.PATH` or `$message.NAME`: the step is planned only when that is there."""


class Skill(FrozenModel):
    """A workflow of several tools that one sentence can ask for."""

    name: ToolName
    domain: str = ""
    description: NonEmpty
    examples: tuple[Utterance, ...] = ()
    synonyms: tuple[NonEmpty, ...] = ()
    input_schema: dict[str, Json] = Field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """Schema of the values that are read from the message, like that of a tool."""
    needs_context: tuple[NonEmpty, ...] = ()
    """Names of context entries without which it cannot be planned."""
    steps: tuple[SkillStep, ...]


class ContextShape(FrozenModel):
    """A named part of the context that has a schema of its own."""

    name: NonEmpty
    schema_file: NonEmpty
    """A JSON Schema, relative to the pack's folder."""
    description: str = ""
    check: str = ""
    """`module:function` for what no schema can say: (value) → faults, each as `/pointer: sentence`."""


class PackSetting(FrozenModel):
    """A variable of the environment that the pack's handlers may read."""

    name: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    description: str = ""
    secret: bool = False
    default: str = ""


class PackRule(FrozenModel):
    """Something that is never done in this business, whoever asks and whatever was approved."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    directive: Literal[
        "safety_confidentiality_legal",
        "contract_correctness",
        "operational_continuity",
        "revenue_flow",
        "brand_integrity",
    ]
    """The prime directive that it belongs to. A higher one is looked at first."""
    because: NonEmpty
    """Clause that a person reads behind `Directive conflict`."""
    patterns: tuple[NonEmpty, ...]
    """Regular expressions over the message in small letters; a blank stands for white space. Words that are denied,
    asked about or only written down do not count."""
    refuses: tuple[NonEmpty, ...]
    """Messages that it must refuse."""
    allows: tuple[NonEmpty, ...]
    """Messages that look like these, and that no directive may refuse."""


class PackRegistry(FrozenModel):
    """The whole of `tools.registry.json`, as it was written."""

    pack: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
    version: NonEmpty
    description: NonEmpty
    settings: tuple[PackSetting, ...] = ()
    domains: tuple[DomainRow, ...]
    tier_examples: tuple[TierExample, ...] = ()
    time_zone: str = ""
    """The time zone of `today`: the name of a setting, or of a zone such as `Australia/Melbourne`. Empty: where
    the machine is."""
    reads_at_once: bool = False
    """True if a plan of T0 tools is performed when `podium ask` is given no mode."""
    vocabulary: dict[str, NonEmpty] = Field(default_factory=dict)
    """Kind of field → file of its known words, one a line, such as `suburb`."""
    contexts: tuple[ContextShape, ...] = ()
    reader: str = ""
    """`module:function` that reads one row for `verify`: (table, where, columns, scope) → row or None."""
    rules: tuple[PackRule, ...] = ()
    """Rules of this business beside those that hold everywhere."""
    skills: tuple[Skill, ...] = ()
    tools: tuple[PackTool, ...]


class Pack(FrozenModel):
    """A registry that was checked, with what its files say."""

    registry: PackRegistry
    folder: str
    digest: str
    """Of the registry and all files of the pack: what an approval of a plan is bound to."""
    vocabulary: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Kind of field → known words."""
    context_schemas: dict[str, dict[str, Json]] = Field(default_factory=dict)
    """Name of a context entry → its JSON Schema."""

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def name(self) -> str:
        return self.registry.pack

    def tool(self, name: str) -> PackTool | None:
        return self._by_name.get(name)

    def skill(self, name: str) -> Skill | None:
        return next((skill for skill in self.registry.skills if skill.name == name), None)

    @property
    def _by_name(self) -> dict[str, PackTool]:
        # Nouns are frozen; what is derived is kept beside the fields.
        tools = self.__dict__.get("_tools_by_name")
        if tools is None:
            tools = {tool.name: tool for tool in self.registry.tools}
            self.__dict__["_tools_by_name"] = tools
        return tools


class PatternMatch(NamedTuple):
    """A row's pattern that fits a tool's name. Of two, the greater one has the say."""

    exact: bool
    literal_length: int
    """Number of characters of the name that the pattern spells out."""
    tier: Tier
    """Between patterns that say equally much, the riskier row is believed."""
    pattern: str
    row: DomainRow

    @property
    def specificity(self) -> tuple[bool, int]:
        return self.exact, self.literal_length


def fits(registry: PackRegistry, tool_name: str) -> list[PatternMatch]:
    """Every pattern that fits the name, the most specific first."""
    return sorted(_fits(registry, tool_name), key=lambda fit: fit[:3], reverse=True)


def most_specific(registry: PackRegistry, tool_name: str) -> DomainRow | None:
    """The row whose pattern fits best. None: no pattern fits."""
    matches = fits(registry, tool_name)
    return matches[0].row if matches else None


def floor_tier(registry: PackRegistry, tool_name: str) -> tuple[Tier, str]:
    """The lowest tier a tool of this name can have, and why. A name under no row is taken for T4."""
    for example in registry.tier_examples:
        if example.tool == tool_name:
            return example.tier, f"the tier table has {tool_name} as {example.tier}"
    matches = fits(registry, tool_name)
    if not matches:
        return Tier.T4, f"no domain has {tool_name}"
    best = matches[0]
    return best.tier, f"domain {best.row.name} ({best.pattern}) is {best.tier} by default"


def _fits(registry: PackRegistry, tool_name: str) -> Iterator[PatternMatch]:
    for row in registry.domains:
        for pattern in row.patterns:
            if fnmatchcase(tool_name, pattern):
                literal = len(pattern.replace("*", "").replace("?", ""))
                yield PatternMatch(pattern == tool_name, literal, row.default_tier, pattern, row)
