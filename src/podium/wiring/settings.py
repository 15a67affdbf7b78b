"""What can be set, with its defaults: the shape of `podium.yaml` and of the user's file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from podium.domain.launching import NetworkPolicy
from podium.domain.model import Json, NonEmpty, Noun
from podium.domain.steering_files import PROGRAM_FILES, STEERING_FILE
from podium.domain.terms import Mode
from podium.domain.usage import Budget
from podium.domain.work import QueueSpec
from podium.wiring.chat_settings import ChatSettings, NoticeSettings

if TYPE_CHECKING:
    from podium.domain.asking import TurnLimits

Limit = TypeVar("Limit", int, float)

NETWORKS: tuple[NetworkPolicy, ...] = ("none", "model-only", "listed", "open")
"""From the strictest to the most trusting."""
DEFAULT_NETWORK: NetworkPolicy = "model-only"


def _tighter(mine: Limit | None, theirs: Limit | None, own: Limit | None) -> Limit | None:
    """What holds of a limit of the user's file and a project's. 0: none; `own`: where the user said nothing.

    A project can lower it, and neither raise it nor switch it off.
    """
    before = own if mine is None else mine
    if not before or not theirs:
        return theirs or before
    return min(before, theirs)


_MOST = 1_000_000_000
"""Beyond what machines have, and as bytes still a number that the kernel takes."""


def _to_be_had(amount: int) -> int:
    if amount > _MOST:
        raise ValueError(f"is more than {_MOST}, which no machine has; 0 means no limit")
    return amount


TreeLimit = Annotated[NonNegativeInt, AfterValidator(_to_be_had)]
"""Processes, or megabytes."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


def _address(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("is no address; write it with http:// or https:// before it")
    return text


class Section(Noun):
    """A part of the settings. Strict: a number in quotes is text, and text is no number."""

    model_config = ConfigDict(strict=True)


class AgentSettings(Section):
    """A brain under a name that roles refer to."""

    kind: NonEmpty
    """The medium: `gemini`, `codex`, `claude`, `opencode`, `acp`, `api`, `bus`, `command` or `scripted`."""
    command: Annotated[tuple[NonEmpty, ...], PROGRAM_FILES] = ()
    """How it is started when not as usual. From a project it needs `podium trust` first."""
    script: Annotated[str, STEERING_FILE] = ""
    """For `scripted`: the file that says what it does, from the project's folder."""
    model: str = ""
    """What it thinks with. Empty: the medium's own choice."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables set for it. Secrets only as `secret://NAME`. From a project it needs `podium trust`."""
    base_url: Annotated[str, AfterValidator(_address)] = ""
    """Where its model is served, when not at the provider. From a project it needs `podium trust`."""
    options: dict[str, Json] = Field(default_factory=dict)
    """What only this medium knows; see its page. From a project it needs `podium trust`."""
    timeout_seconds: PositiveFloat = 600.0
    """How long one turn may take."""
    max_turns: PositiveInt | None = None
    """How often its model may be asked in one turn."""
    max_tokens: PositiveInt | None = None
    """How many tokens one turn may use."""
    max_usd: PositiveFloat | None = None
    """What one turn may cost."""

    @property
    def limits(self) -> TurnLimits:
        # Late: it comes with all that an agent is asked with, which most commands do without.
        from podium.domain.asking import TurnLimits

        return TurnLimits(
            seconds=self.timeout_seconds,
            tokens=self.max_tokens,
            usd=self.max_usd,
            turns=self.max_turns,
        )


class RoleSettings(Section):
    """Which agent plays a part, and with which tools."""

    agent: NonEmpty | tuple[NonEmpty, ...]
    """Who plays it. Of several, the next is asked when one is down, out of quota or not logged in."""
    description: str = ""
    allowed_tools: tuple[NonEmpty, ...] | None = None
    """None: all that the gate allows; in the pipeline, what a stage of its kind needs."""
    own_tools: tuple[NonEmpty, ...] | None = None
    """What its agent may use of its own beside files and shell: `web_search`, `web_fetch`, `subagents`, …"""

    @property
    def agents(self) -> tuple[str, ...]:
        """The names, in the order of asking."""
        return (self.agent,) if isinstance(self.agent, str) else self.agent


class QueueSettings(Section):
    """How a queue is served; see `QueueSpec`."""

    concurrency: PositiveInt | None = None
    worker_concurrency: PositiveInt = 4
    rate_limit: PositiveInt | None = None
    rate_seconds: PositiveFloat = 1.0
    labels: tuple[NonEmpty, ...] = ()
    """What a worker must offer to serve it: `podium worker --label gpu,repo=app`."""

    def spec(self, name: str) -> QueueSpec:
        return QueueSpec(name=name, **self.model_dump())


class BudgetSettings(Section):
    """Limits on one scope. None: no wish of this file; 0: no limit, in your own file."""

    usd: NonNegativeFloat | None = None
    tokens: NonNegativeInt | None = None
    turns: NonNegativeInt | None = None
    seconds: NonNegativeFloat | None = None

    def tightened_by(
        self, project: BudgetSettings, own: BudgetSettings | None = None
    ) -> BudgetSettings:
        """With a project's limits where they are lower; `own` holds where your own file has no wish."""
        fields = BudgetSettings.model_fields
        return self.model_copy(
            update={
                n: _tighter(getattr(self, n), getattr(project, n), getattr(own, n, None))
                for n in fields
            }
        )

    def completed_by(self, own: BudgetSettings) -> BudgetSettings:
        """With the other's limits where this has no wish."""
        missing = {
            name: amount for name, amount in own.model_dump().items() if getattr(self, name) is None
        }
        return self.model_copy(update=missing)

    @property
    def limits(self) -> dict[str, float]:
        """Those that hold, by measure."""
        return {name: amount for name, amount in self.model_dump().items() if amount}


OWN_RUN_BUDGET = BudgetSettings(tokens=10_000_000, usd=25.0)
"""What a run may use where nobody said anything: several times what a long task takes, and an end to what loops."""


class BudgetsSettings(Section):
    """Limits by scope. A project can lower your own and the defaults."""

    call: BudgetSettings = BudgetSettings()
    step: BudgetSettings = BudgetSettings()
    run: BudgetSettings = BudgetSettings()
    day: BudgetSettings = BudgetSettings()

    def tightened_by(self, other: BudgetsSettings) -> BudgetsSettings:
        return BudgetsSettings(
            call=self.call.tightened_by(other.call),
            step=self.step.tightened_by(other.step),
            run=self.run.tightened_by(other.run, OWN_RUN_BUDGET),
            day=self.day.tightened_by(other.day),
        )

    def in_force(self) -> BudgetsSettings:
        """With what holds where nobody had a wish."""
        return self.model_copy(update={"run": self.run.completed_by(OWN_RUN_BUDGET)})

    def budgets(self) -> tuple[Budget, ...]:
        """The scopes that have a limit."""
        limits = {"call": self.call, "step": self.step, "run": self.run, "day": self.day}
        return tuple(
            Budget.model_validate({"scope": scope, **limit.limits})
            for scope, limit in limits.items()
            if limit.limits
        )


@cache
def own_tree_limits() -> dict[str, int]:
    """Limits of process trees where nobody set any, by the names of their settings. 0: no limit.

    Far above what builds and test suites take, and below what brings a machine down.
    """
    if sys.platform != "linux":
        return {"memory_mb": 0, "processes": 0, "file_mb": 4096, "temporary_mb": 0}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1_000_000
    return {
        "memory_mb": max(memory // 2, 1),
        "processes": 1024,
        "file_mb": 4096,
        "temporary_mb": max(min(4096, memory // 4), 1),
    }


class SandboxSettings(Section):
    """How what agents start is confined. Of two files the stricter holds; None: no wish of this file."""

    kind: Literal["none", "kernel"] | None = None
    """`kernel` unless your own file, or you just now, say `none`."""
    network: NetworkPolicy | None = None
    """`model-only` unless something else is set."""
    hosts: tuple[NonEmpty, ...] = ()
    """For `listed`: what may be reached beside the model. A project's count after `podium trust`."""
    read: tuple[NonEmpty, ...] = ()
    """Folders beside the workspace that may be read. Those of your own file alone."""
    memory_mb: TreeLimit | None = None
    """What all processes of a tree together may have in memory. Half of the machine's; 0 in your own file: no limit."""
    processes: TreeLimit | None = None
    """Processes of a tree. 1024; 0 in your own file: no limit."""
    file_mb: TreeLimit | None = None
    """How large a file may grow. 4096; 0 in your own file: no limit."""
    temporary_mb: TreeLimit | None = None
    """What `/tmp` and a tree's other folders in memory may hold together. 4096, or a quarter of the machine's memory if that is less;
    0 in your own file: no limit."""

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, given: Json) -> Json:
        """`sandbox: none` says it all."""
        if isinstance(given, str):
            return {"kind": given}
        if not isinstance(given, dict):
            return given
        # Behind this validator lists are no longer read as they come from a file.
        return {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}

    def tightened_by(self, project: SandboxSettings) -> SandboxSettings:
        """What holds when this is the user's file and the other one a project's."""
        network = self._narrower(project.network)
        listed = common(self._listed(), project._listed()) or ()
        return SandboxSettings(
            kind=project.kind if project.kind == "kernel" else self.kind,
            network=network,
            hosts=listed if network == "listed" else (),
            read=self.read,
            **{
                name: _tighter(getattr(self, name), getattr(project, name), own)
                for name, own in own_tree_limits().items()
            },
        )

    def in_force(self) -> SandboxSettings:
        """With what holds where nobody had a wish."""
        limits = {
            name: own for name, own in own_tree_limits().items() if getattr(self, name) is None
        }
        held = {"kind": self.kind or "kernel", "network": self.network or DEFAULT_NETWORK}
        return self.model_copy(update={**held, **limits})

    def _narrower(self, wished: NetworkPolicy | None) -> NetworkPolicy:
        # What a project opens beyond the default, its file has to be trusted for.
        mine = self.network or DEFAULT_NETWORK
        return min(mine, wished or mine, key=NETWORKS.index)

    def _listed(self) -> tuple[str, ...] | None:
        return self.hosts if self.network == "listed" else None


class WorkspacesSettings(Section):
    """Where tasks are worked on, and what makes a fresh workspace fit to build and test in.

    From a project all of it but `forbidden` needs `podium trust`.
    """

    folder: str = ""
    """Where worktrees go, from the project on. Empty: `../.worktrees` beside it."""
    forbidden: tuple[NonEmpty, ...] = ()
    """Paths from the workspace on that nobody in it may change."""
    copy_files: tuple[NonEmpty, ...] = ()
    """Files that git does not carry, such as `.env`."""
    ports: tuple[NonEmpty, ...] = ()
    """Variables that each get a free port of their own."""
    after_create: tuple[NonEmpty, ...] = ()
    """Shell lines, run inside each new workspace in this order."""
    ready: str = ""
    """A shell line that must succeed before the workspace is used."""
    seconds: PositiveFloat = 600.0
    """For all of these together."""

    @property
    def needs_trust(self) -> bool:
        return bool(self.folder or self.copy_files or self.after_create or self.ready)


class EnvironmentSettings(Section):
    """Variables of your own environment that child processes may see.

    The user's file says which; a project can take names away, never add them.
    """

    inherit: tuple[NonEmpty, ...] | None = None
    """Beside the launcher's own list. None: this file has no wish."""
    deny: tuple[NonEmpty, ...] = ()
    """Names that are never handed on, whoever asks."""

    def tightened_by(self, other: EnvironmentSettings) -> EnvironmentSettings:
        return EnvironmentSettings(
            inherit=common(self.inherit, other.inherit),
            deny=tuple(dict.fromkeys((*self.deny, *other.deny))),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What may be handed on."""
        return tuple(name for name in self.inherit or () if name not in self.deny)


class ForgeSection(Section):
    """Where the project's branches go. What is not said is found in the repository."""

    host: NonEmpty = "github.com"
    """The GitHub whose token this is: github.com, or the host of a GitHub Enterprise. From your own file alone."""
    api_url: Annotated[str, AfterValidator(_address)] = ""
    """Where its API is. From your own file alone."""
    remote: str = ""
    """Name of the remote. Empty: `remote.pushDefault`, `origin`, or the only one."""

    def tightened_by(self, project: ForgeSection) -> ForgeSection:
        """A project may name one of the repository's remotes; who gets the token it may not say."""
        return self.model_copy(update={"remote": project.remote or self.remote})


class CheckSettings(Section):
    """A command that tells whether the project is in order."""

    name: NonEmpty
    run: NonEmpty
    """A shell line."""


class Settings(Section):
    """Everything that can be set, but for the policy, whose layers the gate keeps apart."""

    mode: Mode = "supervised"
    """How far Podium goes by itself."""
    user: str = ""
    """Who you are, in approvals and events. Never taken from a project."""
    agents: dict[NonEmpty, AgentSettings] = Field(default_factory=dict)
    roles: dict[NonEmpty, RoleSettings] = Field(default_factory=dict)
    flows: dict[NonEmpty, dict[str, Json]] = Field(default_factory=dict)
    """Options of each flow, checked when it is started; their shapes stand in `flow_options`."""
    approvers: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(default_factory=dict)
    """Who belongs to which group of approvers."""
    redact: tuple[Annotated[NonEmpty, AfterValidator(_pattern)], ...] = ()
    """Regular expressions of what must never be written down."""
    secrets: tuple[NonEmpty, ...] | None = None
    """Variables of your environment that `secret://NAME` may stand for. None: this file has no wish.

    The user's file says which; a project can take names away, never add them.
    """
    not_secret: tuple[NonEmpty, ...] | None = None
    """Variables of your environment whose values may be written and committed although their names tell of a secret.

    The user's file says which; a project can take names away, never add them. `secrets` goes before it.
    """
    checks: tuple[NonEmpty | CheckSettings, ...] | None = None
    """Commands that the supervisor runs itself before it believes that work is done. None: those that are found."""
    forge: ForgeSection = ForgeSection()
    queues: dict[NonEmpty, QueueSettings] = Field(default_factory=dict)
    budgets: BudgetsSettings = BudgetsSettings()
    sandbox: SandboxSettings = SandboxSettings()
    workspaces: WorkspacesSettings = WorkspacesSettings()
    environment: EnvironmentSettings = EnvironmentSettings()
    notices: tuple[NoticeSettings, ...] = ()
    """Who is told of what waits and what ended, see notices.md. A project's count after `podium trust`."""
    chat: ChatSettings = ChatSettings()
    """Chats that may steer, see notices.md. A project's count after `podium trust`."""

    def queue_specs(self) -> tuple[QueueSpec, ...]:
        return tuple(queue.spec(name) for name, queue in self.queues.items())


def common(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return one if other is None else other
    return tuple(value for value in one if value in other)


def with_nulls_off(settings: SettingsFile, data: Mapping[str, Json]) -> SettingsFile:
    """With limits switched off that the file has as `null`: as by 0. One that is left out has its default."""
    sandbox = {name: 0 for name in own_tree_limits() if _is_null(data, "sandbox", name)}
    budgets = {
        scope: getattr(settings.budgets, scope).model_copy(
            update={
                n: 0 for n in BudgetSettings.model_fields if _is_null(data, "budgets", scope, n)
            }
        )
        for scope in BudgetsSettings.model_fields
    }
    return settings.model_copy(
        update={
            "sandbox": settings.sandbox.model_copy(update=sandbox),
            "budgets": settings.budgets.model_copy(update=budgets),
        }
    )


def _is_null(data: Json, *path: str) -> bool:
    for key in path:
        if not isinstance(data, dict) or key not in data:
            return False
        data = data[key]
    return data is None


class SettingsFile(Settings):
    """What a file may hold: the settings, and its layer of the policy."""

    policy: dict[str, Json] = Field(default_factory=dict)
    """Checked in full when a gate is built of it: most commands need none."""
