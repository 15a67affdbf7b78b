"""The policy: what people write, as frozen models. `compiling` turns it into a gate."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from podium.core.decisions import Access, Budget, Effect, Tier, Zone, ZoneKind
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.processes import NetworkPolicy
from podium.core.protected_paths import AUTOMATION, PROTECTED_NAMES, SETTINGS, zone_globs
from podium.core.work import Mode
from podium.policy.patterns import CommandPattern
from podium.policy.programs import CommandKind
from podium.policy.zones import check_glob

Origin = Literal["built-in", "user", "project"]
Undecidable = Literal["sandbox", "ask", "deny"]
"""From the most to the least: left to the sandbox, asked about, denied."""


def _tier_named(value: Any) -> Any:
    if isinstance(value, str):
        if value not in Tier.__members__:
            raise ValueError(f"{value!r} is no tier; write one of {', '.join(Tier.__members__)}")
        return Tier[value]
    return value


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _checked_command(text: str) -> str:
    try:
        CommandPattern(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no command pattern: {error}") from error
    return text


def _checked_regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


TierName = Annotated[Tier, BeforeValidator(_tier_named)]
_OneOrMany = BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])
Names = Annotated[tuple[NonEmpty, ...], _OneOrMany]
Commands = Annotated[tuple[Annotated[str, AfterValidator(_checked_command)], ...], _OneOrMany]
PathGlobs = Annotated[tuple[Annotated[str, AfterValidator(check_glob)], ...], _OneOrMany]
RuleName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]


class ArgumentMatch(FrozenModel):
    """Conditions for one argument. Several conditions must all hold.

    In YAML a plain text is a `glob`, another scalar is `equals`, a list is `one_of`.
    """

    glob: NonEmpty | None = None
    """For a path argument over its real path from the workspace on; else over the text."""
    equals: Json = None
    """The value."""
    one_of: tuple[Json, ...] | None = None
    """One of these values."""
    regex: Annotated[str, AfterValidator(_checked_regex)] | None = None
    """Must fit the whole text."""
    min: float | None = None
    """Not below this number."""
    max: float | None = None
    """Not above this number."""
    present: bool | None = None
    """True: given at all. False: not given."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"glob": value}
        if isinstance(value, (list, tuple)):
            return {"one_of": tuple(value)}
        return value if isinstance(value, (dict, ArgumentMatch)) else {"equals": value}

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give one of glob, equals, one_of, regex, min, max, present")
        return self


class PolicyExample(FrozenModel):
    """A call a rule must fit, or must not. In YAML a plain text is a `command`."""

    command: str = ""
    """Command line."""
    tool: str = "run_command"
    """Name of the tool."""
    arguments: dict[str, Json] = Field(default_factory=dict)
    """Arguments of the tool."""
    reads: tuple[str, ...] = ()
    """Paths the call would read, relative to the workspace or absolute."""
    writes: tuple[str, ...] = ()
    """Paths the call would write."""
    deletes: tuple[str, ...] = ()
    """Paths the call would delete."""
    mode: Mode | None = None
    """None: one in which the rule holds."""
    role: str = ""
    """Role that asks."""
    confined: bool | None = None
    """None: as the rule wants it."""
    network: NetworkPolicy | None = None
    """Network setting of the sandbox."""
    hosts: tuple[str, ...] = ()
    """Listed hosts."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"command": value} if isinstance(value, str) else value


class CallMatcher(FrozenModel):
    """Conditions for the calls that are meant. All that are given must hold."""

    tool: Names = ()
    """Globs over the tool's name."""
    command: Commands = ()
    """Patterns of commands, word by word; `*` is one word, `**` any number."""
    but_not: Commands = ()
    """Patterns of commands to exclude."""
    kind: Annotated[
        tuple[CommandKind, ...],
        BeforeValidator(_listed, json_schema_input_type=CommandKind | tuple[CommandKind, ...]),
    ] = ()
    """Kinds of command, such as `git-read`."""
    arguments: dict[str, ArgumentMatch] = Field(default_factory=dict)
    """Conditions on arguments by name; `customer.email` reaches into objects."""
    zone: Names = ()
    """Names of zones that the call touches."""
    access: Annotated[
        tuple[Access, ...],
        BeforeValidator(_listed, json_schema_input_type=Access | tuple[Access, ...]),
    ] = ()
    """Kinds of access to the zone."""
    modes: Annotated[
        tuple[Mode, ...], BeforeValidator(_listed, json_schema_input_type=Mode | tuple[Mode, ...])
    ] = ()
    """Modes in which the rule applies. Empty: all."""
    roles: Names = ()
    """Globs over the role that asks."""
    confined: bool | None = None
    """Only for calls in the sandbox (true) or outside of it (false)."""
    network: Annotated[
        tuple[NetworkPolicy, ...],
        BeforeValidator(_listed, json_schema_input_type=NetworkPolicy | tuple[NetworkPolicy, ...]),
    ] = ()
    """Only for confined calls with this network setting."""

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if not (self.tool or self.command or self.kind or self.arguments or self.zone):
            raise ValueError("name what is meant: tool, command, kind, arguments or zone")
        if self.but_not and not (self.command or self.kind):
            raise ValueError("`but_not` needs `command` or `kind` to take something away from")
        return self


class PolicyRule(CallMatcher):
    """Allow, deny or ask for the calls that are meant."""

    name: RuleName
    """Name of the rule, in decisions and events."""
    decision: Effect
    """The gate's answer."""
    why: str = ""
    """Reason that the agent and the approver read."""
    tier: TierName | None = None
    """The calls are at least this risky."""
    up_to_tier: TierName | None = None
    """With `allow`: nobody is asked up to this tier. Not for a project's policy."""
    approvals: Names = ()
    """With `ask`: groups that must approve, in order."""
    match: tuple[PolicyExample, ...] = ()
    """Examples that the rule must match; tried on loading."""
    not_match: tuple[PolicyExample, ...] = ()
    """Examples that it must not match; tried on loading."""

    @model_validator(mode="after")
    def _fits_its_decision(self) -> Self:
        if self.approvals and self.decision is not Effect.ASK:
            raise ValueError("`approvals` belongs to `decision: ask`")
        if self.up_to_tier is not None and self.decision is not Effect.ALLOW:
            raise ValueError("`up_to_tier` belongs to `decision: allow`")
        return self


class QuotaSpec(CallMatcher):
    """A limit to the number of matching calls within a window, over all processes."""

    name: RuleName
    """Name of the quota."""
    limit: int = Field(ge=0)
    """Maximum number of calls in the window."""
    seconds: float = Field(gt=0)
    """Length of the window."""


class ZoneSpec(FrozenModel):
    """A named place. In YAML a list stands for its `paths`."""

    paths: PathGlobs
    """Globs relative to the workspace, or absolute. Each covers everything below it."""
    but_not: PathGlobs = ()
    """Globs to exclude."""
    kind: ZoneKind | None = None
    """Unset: `safe` and `forbidden` for zones of these names, else `plain`."""
    read_tier: TierName | None = None
    """Minimum tier of reads."""
    write_tier: TierName | None = None
    """Minimum tier of writes."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"paths": value} if isinstance(value, (list, tuple, str)) else value

    def zone(self, name: str) -> Zone:
        """The zone that this says, under its name."""
        return Zone(
            name=name,
            paths=self.paths,
            but_not=self.but_not,
            kind=self.kind or _KIND_BY_NAME.get(name, "plain"),
            read_tier=self.read_tier,
            write_tier=self.write_tier,
        )


_KIND_BY_NAME: dict[str, ZoneKind] = {"safe": "safe", "forbidden": "forbidden"}


class TierLimits(FrozenModel):
    """The highest tier that passes without asking, by mode."""

    supervised: TierName | None = None
    """In mode `supervised`."""
    autonomous: TierName | None = None
    """In mode `autonomous`."""


class Policy(FrozenModel):
    """One layer's rules, places and limits: the `policy` key of a settings file."""

    rules: tuple[PolicyRule, ...] = ()
    """Rules, the first match first; a deny wins over all."""
    zones: dict[RuleName, ZoneSpec] = Field(default_factory=dict)
    """Named places."""
    quotas: tuple[QuotaSpec, ...] = ()
    """Limits on the number of calls."""
    budgets: tuple[Budget, ...] = ()
    """Limits by scope, as under the top-level `budgets`."""
    approval_seconds: float | None = Field(default=None, gt=0)
    """Seconds that a person has to answer an approval. A day unless set."""
    max_tier_without_asking: TierLimits = TierLimits()
    """Highest tier that passes without an approval."""
    undecidable: Undecidable | None = None
    """Treatment of a confined command whose effect is known only when it runs. `sandbox` unless set."""


class PolicyLayer(FrozenModel):
    """A policy and who wrote it. Later layers know more; a project's may only tighten."""

    origin: Origin
    policy: Policy


@cache
def default_policy() -> Policy:
    """The policy without any configuration.

    Sensible for coding agents: reading, working in the workspace, committing; people for the rest.
    """
    text = (resources.files("podium.policy") / "default_policy.yaml").read_text("utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(text, Loader=loader)["policy"]  # noqa: S506 - both loaders are safe ones
    zones = {**_protected_zones(), **document["zones"]}
    zones["automation"]["paths"] = zone_globs(AUTOMATION)
    zones["podium-settings"]["paths"] = zone_globs(SETTINGS)
    return Policy.model_validate({**document, "zones": zones})


def _protected_zones() -> dict[str, Any]:
    return {
        protected.zone: {
            "paths": (f"**/{protected.name}",),
            "kind": "read-only" if protected.readable else "forbidden",
        }
        for protected in PROTECTED_NAMES
    }
