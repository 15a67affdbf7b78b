"""Settings with their defaults: the shape of `podium.yaml` and of the user's file."""

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

from podium.config.chat_settings import ChatSettings, NoticeSettings
from podium.core.budgets import Budget
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.processes import NetworkPolicy
from podium.core.steering_files import PROGRAM_FILES, STEERING_FILE
from podium.core.work import Mode, QueueSpec

if TYPE_CHECKING:
    from podium.core.turns import TurnLimits

Limit = TypeVar("Limit", int, float)

NETWORKS: tuple[NetworkPolicy, ...] = ("none", "model-only", "listed", "open")
"""From the strictest to the most trusting."""
DEFAULT_NETWORK: NetworkPolicy = "model-only"


def _tighter(mine: Limit | None, theirs: Limit | None, own: Limit | None) -> Limit | None:
    """The tighter limit of the user's file and a project's. 0: none; `own`: where the user said nothing.

    A project can lower it, and neither raise it nor switch it off.
    """
    before = own if mine is None else mine
    if not before or not theirs:
        return theirs or before
    return min(before, theirs)


_MAX_COUNT = 1_000_000_000
"""Beyond what machines have, and as bytes still a number that the kernel takes."""


def _to_be_had(amount: int) -> int:
    if amount > _MAX_COUNT:
        raise ValueError(f"is more than the maximum, {_MAX_COUNT}; 0 means no limit")
    return amount


TreeLimit = Annotated[NonNegativeInt, AfterValidator(_to_be_had)]
"""Processes, or megabytes."""


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from None
    return text


def _address(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("is not a URL; it must start with http:// or https://")
    return text


class Section(FrozenModel):
    """A part of the settings. Strict: a number in quotes is text, and text is no number."""

    model_config = ConfigDict(strict=True)


class AgentSettings(Section):
    """An agent under a name that roles refer to."""

    kind: NonEmpty
    """`gemini`, `codex`, `claude`, `opencode`, `acp`, `api`, `bus`, `command` or `scripted`."""
    command: Annotated[tuple[NonEmpty, ...], PROGRAM_FILES] = ()
    """Command line that replaces the usual one. In a project's file it needs `podium trust`."""
    script: Annotated[str, STEERING_FILE] = ""
    """For `scripted`: file with the script, relative to the project folder."""
    model: str = ""
    """Model name. Empty: the agent's own default."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables to set. Write secrets as `secret://NAME`. In a project's file it needs `podium trust`."""
    base_url: Annotated[str, AfterValidator(_address)] = ""
    """Address of the model server, if not the provider's. In a project's file it needs `podium trust`."""
    options: dict[str, Json] = Field(default_factory=dict)
    """Options of this kind of agent; see its page. In a project's file it needs `podium trust`."""
    timeout_seconds: PositiveFloat = 600.0
    """Time limit of one turn, in seconds."""
    max_turns: PositiveInt | None = None
    """Maximum number of model requests in one turn."""
    max_tokens: PositiveInt | None = None
    """Maximum number of tokens in one turn."""
    max_usd: PositiveFloat | None = None
    """Maximum cost of one turn, in USD."""

    @property
    def limits(self) -> TurnLimits:
        # Late: it comes with all that an agent is asked with, which most commands do without.
        from podium.core.turns import TurnLimits

        return TurnLimits(
            seconds=self.timeout_seconds,
            tokens=self.max_tokens,
            usd=self.max_usd,
            turns=self.max_turns,
        )


class RoleSettings(Section):
    """Agent and tools of a role."""

    agent: NonEmpty | tuple[NonEmpty, ...]
    """Name of the agent, or a list: the next one is used when one is down, out of quota or not logged in."""
    description: str = ""
    """Purpose of the role; shown in lists."""
    allowed_tools: tuple[NonEmpty, ...] | None = None
    """Tools it is offered. Unset: all that the gate allows; in the pipeline, what the stage needs."""
    own_tools: tuple[NonEmpty, ...] | None = None
    """The agent's own tools to leave enabled, such as `web_search`, `web_fetch` or `subagents`."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The names, in the order of asking."""
        return (self.agent,) if isinstance(self.agent, str) else self.agent


class QueueSettings(Section):
    """Settings of a queue."""

    concurrency: PositiveInt | None = None
    """Maximum number of its runs at once, over all workers. Unset: no limit."""
    worker_concurrency: PositiveInt = 4
    """Maximum number of its runs at once in one worker."""
    rate_limit: PositiveInt | None = None
    """Maximum number of runs started within `rate_seconds`. Unset: no limit."""
    rate_seconds: PositiveFloat = 1.0
    """Window of `rate_limit`, in seconds."""
    labels: tuple[NonEmpty, ...] = ()
    """Labels a worker needs to serve it: `podium worker --label gpu,repo=app`."""

    def spec(self, name: str) -> QueueSpec:
        return QueueSpec(name=name, **self.model_dump())


class BudgetSettings(Section):
    """Limits of one scope. Unset: no limit from this file; 0 in your own file: no limit at all."""

    usd: NonNegativeFloat | None = None
    """Cost in USD."""
    tokens: NonNegativeInt | None = None
    """Input and output tokens together."""
    turns: NonNegativeInt | None = None
    """Turns of agents."""
    seconds: NonNegativeFloat | None = None
    """Time that agents work, in seconds."""

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
"""Limit of a run where nobody said anything: several times what a long task takes, and an end to what loops."""


class BudgetsSettings(Section):
    """Limits by scope. A project's file can lower yours and the defaults, and never raise them."""

    call: BudgetSettings = BudgetSettings()
    """One tool call."""
    step: BudgetSettings = BudgetSettings()
    """One step of a run."""
    run: BudgetSettings = BudgetSettings()
    """One run: 10,000,000 tokens and 25 USD unless set."""
    day: BudgetSettings = BudgetSettings()
    """All runs of the project in one day (UTC)."""

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
    """Confinement of agents and the commands they run. Of your file and the project's the stricter applies."""

    kind: Literal["none", "kernel"] | None = None
    """`kernel` unless set. `none`, in your own file or as `PODIUM_SANDBOX=none`, runs agents with your permissions."""
    network: NetworkPolicy | None = None
    """`model-only` unless set. `none`: no network; `model-only`: the agent's model; `listed`: `hosts` too; `open`: everything."""
    hosts: tuple[NonEmpty, ...] = ()
    """For `listed`: hosts to allow besides the model, as `name`, `*.name` or `name:port`. In a project's file it needs `podium trust`."""
    read: tuple[NonEmpty, ...] = ()
    """Folders outside the workspace that may be read, such as `~/.m2`. Your own file only."""
    memory_mb: TreeLimit | None = None
    """Memory of a process tree. Half of the machine's unless set; 0 in your own file: no limit."""
    processes: TreeLimit | None = None
    """Processes in a process tree. 1024 unless set; 0 in your own file: no limit."""
    file_mb: TreeLimit | None = None
    """Size of one file. 4096 unless set; 0 in your own file: no limit."""
    temporary_mb: TreeLimit | None = None
    """Size of `/tmp` and the other in-memory folders together. 4096 unless set, or a quarter of the machine's memory if
    that is less; 0 in your own file: no limit."""

    @model_validator(mode="before")
    @classmethod
    def _kind_alone(cls, value: Json) -> Json:
        """`sandbox: none` says it all."""
        if isinstance(value, str):
            return {"kind": value}
        if not isinstance(value, dict):
            return value
        # Behind this validator lists are no longer read as they come from a file.
        return {key: tuple(v) if isinstance(v, list) else v for key, v in value.items()}

    def tightened_by(self, project: SandboxSettings) -> SandboxSettings:
        """The settings when this is the user's file and the other one a project's."""
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
    """Folders for tasks, and the set-up of a new workspace.

    In a project's file `folder`, `copy_files`, `after_create` and `ready` need `podium trust`.
    """

    folder: str = ""
    """Folder for worktrees, relative to the project. Empty: `../.worktrees`."""
    forbidden: tuple[NonEmpty, ...] = ()
    """Paths in the workspace that no agent may change."""
    copy_files: tuple[NonEmpty, ...] = ()
    """Files outside git to copy into each workspace, such as `.env`."""
    ports: tuple[NonEmpty, ...] = ()
    """Names of variables to set to a free port, one port each."""
    after_create: tuple[NonEmpty, ...] = ()
    """Shell commands to run in each new workspace, in this order."""
    ready: str = ""
    """Shell command that must succeed before the workspace is used."""
    seconds: PositiveFloat = 600.0
    """Time limit of the whole set-up, in seconds."""

    @property
    def needs_trust(self) -> bool:
        return bool(self.folder or self.copy_files or self.after_create or self.ready)


class EnvironmentSettings(Section):
    """Variables of your environment that agents and commands may see.

    Only your own file can add names; a project's file can remove them.
    """

    inherit: tuple[NonEmpty, ...] | None = None
    """Names to pass on besides the built-in list (`PATH`, `LANG`, …)."""
    deny: tuple[NonEmpty, ...] = ()
    """Names never to pass on."""

    def tightened_by(self, other: EnvironmentSettings) -> EnvironmentSettings:
        return EnvironmentSettings(
            inherit=common(self.inherit, other.inherit),
            deny=tuple(dict.fromkeys((*self.deny, *other.deny))),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names that may be handed on."""
        return tuple(name for name in self.inherit or () if name not in self.deny)


class ForgeSection(Section):
    """The remote of the project's branches. What is unset is taken from the repository."""

    host: NonEmpty = "github.com"
    """github.com, or the host of your GitHub Enterprise; it receives your token. Your own file only."""
    api_url: Annotated[str, AfterValidator(_address)] = ""
    """Address of its API, if not the usual one. Your own file only."""
    remote: str = ""
    """Name of the git remote. Empty: `remote.pushDefault`, `origin`, or the only one."""

    def tightened_by(self, project: ForgeSection) -> ForgeSection:
        """A project may name one of the repository's remotes; who gets the token it may not say."""
        return self.model_copy(update={"remote": project.remote or self.remote})


class CheckSettings(Section):
    """A command that must succeed before work is accepted."""

    name: NonEmpty
    """Name in reports."""
    run: NonEmpty
    """Shell command."""


class Settings(Section):
    """Everything that can be set, but for the policy, whose layers the gate keeps apart."""

    mode: Mode = "supervised"
    """Autonomy of Podium: `sensing` and `dry-run` change nothing, `supervised` asks people, `autonomous` asks less."""
    user: str = ""
    """Your name on what you submit. Empty: your login name. Your own file only."""
    agents: dict[NonEmpty, AgentSettings] = Field(default_factory=dict)
    """Agents, by a name of your choice."""
    roles: dict[NonEmpty, RoleSettings] = Field(default_factory=dict)
    """Roles by name; `default` covers every role that is not listed."""
    flows: dict[NonEmpty, dict[str, Json]] = Field(default_factory=dict)
    """Options of each job."""
    approvers: dict[NonEmpty, tuple[NonEmpty, ...]] = Field(default_factory=dict)
    """Groups of approvers: group → people."""
    redact: tuple[Annotated[NonEmpty, AfterValidator(_pattern)], ...] = ()
    """Regular expressions of text to remove from everything Podium stores or prints."""
    secrets: tuple[NonEmpty, ...] | None = None
    """Environment variables that `secret://NAME` may refer to.

    Only your own file can add names; a project's file can remove them.
    """
    not_secret: tuple[NonEmpty, ...] | None = None
    """Environment variables that are not secrets although their names suggest it.

    Only your own file can add names; a project's file can remove them. `secrets` has precedence.
    """
    checks: tuple[NonEmpty | CheckSettings, ...] | None = None
    """Commands that Podium runs itself before it accepts work. Unset: Podium looks for the project's test command; `[]`: none."""
    forge: ForgeSection = ForgeSection()
    """Remote of branches and pull requests."""
    queues: dict[NonEmpty, QueueSettings] = Field(default_factory=dict)
    """Queues by name, besides `default`."""
    budgets: BudgetsSettings = BudgetsSettings()
    """Limits on cost, tokens, turns and time."""
    sandbox: SandboxSettings = SandboxSettings()
    """Confinement of agents and the commands they run."""
    workspaces: WorkspacesSettings = WorkspacesSettings()
    """Set-up of a task's workspace."""
    environment: EnvironmentSettings = EnvironmentSettings()
    """Environment variables that agents and commands may see."""
    notices: tuple[NoticeSettings, ...] = ()
    """Targets of notices. In a project's file they need `podium trust`."""
    chat: ChatSettings = ChatSettings()
    """Chats that may start work and answer approvals. In a project's file it needs `podium trust`."""

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
    """Content of a settings file: the settings, and its layer of the policy."""

    policy: dict[str, Json] = Field(default_factory=dict)
    """This file's rules, zones and limits for the gate."""
