"""The policy: what people write, as frozen models with their patterns. `compiler` turns it into a gate."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from podium.core.decisions import Access, Budget, Effect, Tier, Zone, ZoneKind
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.processes import NetworkPolicy
from podium.core.protected_paths import AUTOMATION, PROTECTED_NAMES, SETTINGS, zone_globs
from podium.core.work import Mode
from podium.policy.programs import CommandKind
from podium.policy.shell import ANY, COMPUTED
from podium.policy.zones import check_glob

REST = "**"
"""A word of a command pattern that stands for any number of words, none included."""

_WILD = frozenset("*?[")


class CommandPattern:
    """One pattern such as `git diff *`, over program and arguments word by word.

    A word may hold wildcards. `*` alone is exactly one word, at the end it is the rest of the
    command; `**` alone is any number of words anywhere. Otherwise the command must end where the
    pattern ends.
    """

    def __init__(self, text: str) -> None:
        tokens = shlex.split(text)
        if not tokens:
            raise ValueError("a command pattern must not be empty")
        if tokens[-1] == "*":
            tokens[-1] = REST
        self._tests = tuple(token if token == REST else _token_test(token) for token in tokens)
        self.program = tokens[0] if not _WILD & set(tokens[0]) else None
        """The program when the pattern names one plainly; None when it may be several."""

    def fits(self, command: Sequence[str]) -> bool:
        """Greedy matching with one step back, linear in practice."""
        at_token = at_pattern = 0
        retry_token, retry_pattern = 0, -1
        while at_token < len(command):
            test = self._tests[at_pattern] if at_pattern < len(self._tests) else None
            if test == REST:
                retry_token, retry_pattern = at_token, at_pattern
                at_pattern += 1
            elif callable(test) and test(command[at_token]):
                at_token += 1
                at_pattern += 1
            elif retry_pattern >= 0:
                retry_token += 1
                at_token, at_pattern = retry_token, retry_pattern + 1
            else:
                return False
        return all(token == REST for token in self._tests[at_pattern:])

    def may_fit(self, command: Sequence[str]) -> bool:
        """Tell whether it could fit once words that are only known when they run are known."""
        prefix: list[str] = []
        for token in command:
            if COMPUTED in token or ANY in token:
                return any(
                    self._fits_beginning(prefix, length) for length in range(len(self._tests) + 1)
                )
            prefix.append(token)
        return self.fits(command)

    def _fits_beginning(self, prefix: Sequence[str], length: int) -> bool:
        shorter = CommandPattern.__new__(CommandPattern)
        shorter._tests = self._tests[:length]
        return shorter.fits(prefix)


class CommandPatterns:
    """Several patterns, found by program."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_program: dict[str, list[CommandPattern]] = {}
        self._for_any: list[CommandPattern] = []
        for pattern in map(CommandPattern, texts):
            if pattern.program is None:
                self._for_any.append(pattern)
            else:
                self._by_program.setdefault(pattern.program, []).append(pattern)

    def fit(self, command: Sequence[str]) -> bool:
        named = self._by_program.get(command[0], ()) if command else ()
        return any(pattern.fits(command) for pattern in (*named, *self._for_any))

    def may_fit(self, command: Sequence[str]) -> bool:
        named = self._by_program.get(command[0], ()) if command else ()
        return any(pattern.may_fit(command) for pattern in (*named, *self._for_any))


@lru_cache(maxsize=512)
def command_patterns(texts: tuple[str, ...]) -> CommandPatterns:
    """Patterns of a rule, compiled once: every gate of a process has the built-in policy's."""
    return CommandPatterns(texts)


class NamePatterns:
    """Globs over a name, such as a tool's or a role's."""

    def __init__(self, globs: Iterable[str]) -> None:
        listed = tuple(globs)
        self._exact = frozenset(glob for glob in listed if not _WILD & set(glob))
        self._tests = tuple(text_glob(glob) for glob in listed if glob not in self._exact)

    def fit(self, name: str) -> bool:
        return name in self._exact or any(test.fullmatch(name) for test in self._tests)


@lru_cache(maxsize=512)
def text_glob(glob: str) -> re.Pattern[str]:
    """A glob over plain text: `*` is anything, slashes included."""
    return re.compile(fnmatch.translate(glob))


def _token_test(token: str) -> Callable[[str], object]:
    return text_glob(token).fullmatch if _WILD & set(token) else token.__eq__


Origin = Literal["built-in", "user", "project"]
Undecidable = Literal["sandbox", "ask", "deny"]
"""From the most to the least: left to the sandbox, asked about, denied."""


def _tier_named(value: Any) -> Any:
    if isinstance(value, str):
        if value not in Tier.__members__:
            raise ValueError(f"{value!r} is not a tier; use one of {', '.join(Tier.__members__)}")
        return Tier[value]
    return value


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _checked_command(text: str) -> str:
    try:
        CommandPattern(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a valid command pattern: {error}") from error
    return text


def _checked_regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a valid regular expression: {error}") from error
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
            raise ValueError("set one of glob, equals, one_of, regex, min, max, present")
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
            raise ValueError("set at least one of tool, command, kind, arguments or zone")
        if self.but_not and not (self.command or self.kind):
            raise ValueError("`but_not` is only possible with `command` or `kind`")
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
            raise ValueError("`approvals` is only possible with `decision: ask`")
        if self.up_to_tier is not None and self.decision is not Effect.ALLOW:
            raise ValueError("`up_to_tier` is only possible with `decision: allow`")
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
