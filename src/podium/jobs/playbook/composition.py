"""Composition of a run: its request, job, gate, tools and MCP-only agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from podium.agents.turn_step import RoleAgent
from podium.app.agent_builder import build_agent
from podium.app.dry_run import NoDoors
from podium.app.work_request import Few, Submission
from podium.config.flow_options import flow_options
from podium.core.errors import BadInput, ConfigInvalid
from podium.core.folder_snapshots import WorkingFolder
from podium.core.model import FrozenModel
from podium.core.protected_paths import is_guarded, lies_in_zone
from podium.core.turns import TurnLimits
from podium.core.work import Run
from podium.jobs.playbook import build_prompt, tools_of
from podium.jobs.playbook.deps import AgentSession, PlaybookDeps
from podium.jobs.playbook.flow import follow_playbook
from podium.jobs.playbook.loader import load_profile, read_playbook, secret_inputs, surroundings
from podium.jobs.playbook.models import (
    OWN_LIMITS,
    PLAYBOOK,
    PROFILE_FILE,
    Playbook,
    PlaybookJob,
    PlaybookOptions,
    PluginProfile,
)
from podium.ports import Agent, ConfinementProvider, FlowBody, HookServers, ToolDoor

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.app.confinement import PlainFolderConfinement
    from podium.jobs.playbook.profile_gate import ProfileGate
    from podium.tools import LocalToolbox, Registry


ALWAYS = ("finish",)
"""Tools that every agent gets: saying that it is done is no risk."""
MCP_ONLY_KINDS = ("api", "scripted", "gemini", "claude", "codex")
"""Kinds of agents whose own tools can be switched off, or that have none."""


def playbook_job(
    podium: Podium,
    playbook: Playbook,
    profile: PluginProfile,
    *,
    root: Path,
    agent: str = "",
    inputs: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> PlaybookJob:
    """Validate and build the job before a run is stored. Raises `BadInput` and changes nothing."""
    if not root.is_dir():
        raise BadInput(f"folder {str(root)!r} does not exist")
    _refuse_own_folders(podium, root.resolve())
    _refuse_steering(profile)
    options = _options(podium)
    values = dict(inputs or {})
    secret_inputs(values, podium.redactor)
    facts = surroundings()
    job = PlaybookJob(
        playbook=playbook,
        profile=profile,
        inputs=values,
        facts=facts,
        agent=chosen_agent(podium, agent or options.agent),
        root=str(root.resolve()),
        tools=_tools(podium, playbook, profile),
        limits=playbook.head.limits.completed_by(options.limits).completed_by(OWN_LIMITS),
        dry_run=dry_run,
    )
    # Problems are reported now, not by a run that was started.
    build_agent(podium, job.agent, NoDoors(), mcp_only_confinement=podium.confinement_provider)
    build_prompt(profile, playbook, values, facts)
    return job


def _options(podium: Podium) -> PlaybookOptions:
    return PlaybookOptions.model_validate(flow_options(podium.configuration, PLAYBOOK))


def chosen_agent(podium: Podium, name: str) -> str:
    """Check the agent's name. Raises `BadInput` if it is ambiguous, unknown, or has tools of its own."""
    agents = podium.settings.agents
    if name in podium.made_agents:
        return name
    if not agents:
        raise BadInput(
            f"no agent is configured; add one to {podium.folders.project_file}, such as\n"
            "  agents:\n"
            "    gemini: {kind: api, model: 'google:gemini-2.5-flash', env: {GEMINI_API_KEY: 'secret://GEMINI_API_KEY'}}"
        )
    listed = ", ".join(sorted(agents))
    if not name and len(agents) > 1:
        raise BadInput(
            f"several agents are configured; pass --agent NAME, or set `flows: playbook: agent:` in podium.yaml; "
            f"agents: {listed}"
        )
    name = name or next(iter(agents))
    if name not in agents:
        raise BadInput(f"podium.yaml has no agent {name!r}; agents: {listed}")
    if agents[name].kind not in MCP_ONLY_KINDS:
        raise BadInput(
            f"agent {name!r} is of kind {agents[name].kind!r}, whose own tools cannot be disabled; a playbook needs an "
            f"agent of one of these kinds: {', '.join(MCP_ONLY_KINDS)}"
        )
    return name


def _tools(podium: Podium, playbook: Playbook, profile: PluginProfile) -> tuple[str, ...]:
    """List the tools that both files allow, by name. Raises `BadInput` for an unknown one."""
    specs = registry_for(profile).specs()
    names = [spec.name for spec in specs]
    requested = tools_of(profile, playbook.head)
    if requested is None:
        return tuple(spec.name for spec in specs if spec.offered != "by_name")
    unknown = [name for name in requested if name not in names]
    if unknown:
        raise BadInput(
            f"there is no tool {' or '.join(map(repr, unknown))}; tools: {', '.join(names)}"
        )
    return tuple(dict.fromkeys((*requested, *ALWAYS)))


def registry_for(profile: PluginProfile, within: ConfinementProvider | None = None) -> Registry:
    """Build the registry of built-in tools and the plugin's checks, which run in the confinement `within`."""
    from podium.tools import Registry, builtin_tools, checks_tool

    commands = profile.commands.model_dump(exclude_none=True)
    checks = (checks_tool(commands, profile.secrets, within),) if commands else ()
    return Registry([*builtin_tools(), *checks])


async def build_playbook(podium: Podium) -> FlowBody:
    """Build the flow with the agents and tools of this project."""
    from podium.jobs.playbook.profile_gate import off_limits
    from podium.jobs.playbook.working_folder import working_folders

    deps = PlaybookDeps(
        store=await podium.store(),
        clock=podium.clock,
        budget_tracker=await podium.budget_tracker(),
        folders=working_folders(podium),
        off_limits=off_limits,
        open_session=lambda job, folder: agent_session(podium, job, folder),
    )
    return follow_playbook(deps)


async def agent_session(
    podium: Podium,
    job: PlaybookJob,
    folder: WorkingFolder,
    agent_behind: Callable[[HookServers], Agent] | None = None,
) -> AgentSession:
    """Build agent and tools of one run, with their own hook server.

    `agent_behind` makes another agent than the configured one; it needs no socket.
    """
    from podium.app.confinement import ReadOnlyConfinement
    from podium.jobs.playbook.profile_gate import off_limits, profile_gate
    from podium.sandbox import HookServer

    root, named = Path(folder.root), off_limits(job.profile)
    gate, zones = profile_gate(podium.configuration, job.profile), podium.gate.closed_paths

    def closed(path: str) -> bool:
        return named(path) or lies_in_zone(path, zones) or is_guarded(path)

    def hidden(path: str) -> bool:
        # Certificates that everybody has look like keys, and programs break without them.
        real = str(root / path)
        return not path.endswith(".pem") and gate.passed_over(real, str(root))

    # The plugin's own checks see all files; commands of the agent do not.
    whole = _confinement(podium, closed)
    narrow = _confinement(podium, closed, hidden)
    registry = registry_for(job.profile, whole)

    async def behind(
        gate: ProfileGate, confinement: ConfinementProvider
    ) -> tuple[ToolDoor, LocalToolbox]:
        door = await podium.tool_door(
            root, registry=registry, gate=gate, confinement_provider=confinement
        )
        return door, podium.toolbox_behind(
            door, root, registry, gate=gate, confinement_provider=confinement
        )

    door, toolbox = await behind(gate, narrow)
    open_gate = profile_gate(podium.configuration, job.profile, closed=False)
    _, prover = await behind(open_gate, whole)
    doors = HookServer(
        door,
        toolbox,
        await podium.journal(),
        redact=podium.redactor.text,
        hands=False,
        listens=agent_behind is None,
    )
    if agent_behind is not None:
        role_agent = RoleAgent(PLAYBOOK, agent_behind(doors), allowed_tools=job.tools, own_tools=())
        return AgentSession(role_agent, prover)
    confinement = ReadOnlyConfinement(podium.confinement_provider, folder.root)
    settings = podium.settings.agents.get(job.agent)
    role_agent = RoleAgent(
        role=PLAYBOOK,
        agent=build_agent(podium, job.agent, doors, mcp_only_confinement=confinement),
        allowed_tools=job.tools,
        own_tools=(),
        limits=settings.limits if settings else TurnLimits(),
    )
    return AgentSession(role_agent, prover)


def _confinement(
    podium: Podium,
    closed: Callable[[str], bool],
    hidden: Callable[[str], bool] = lambda path: False,
) -> PlainFolderConfinement:
    from podium.app.confinement import PlainFolderConfinement
    from podium.policy import exec_rules

    empty = podium.folders.user_state / "empty"
    return PlainFolderConfinement(podium.configuration.sandbox, exec_rules, empty, closed, hidden)


def _refuse_steering(profile: PluginProfile) -> None:
    """Raise `BadInput` for secrets under names that change what a command runs."""
    from podium.tools.builtin.commands import STEERING

    if caught := [name for name in profile.secrets if re.search(STEERING, name)]:
        raise BadInput(
            f"{PROFILE_FILE}: secrets: {', '.join(caught)} would change what a command runs; use another name"
        )


def _refuse_own_folders(podium: Podium, root: Path) -> None:
    """Raise `BadInput` for a folder that contains Podium's own state."""
    folders = podium.folders
    own = [folders.user_state, folders.user_config]
    if root != folders.project.resolve():
        own.append(folders.state)
    for path in own:
        resolved = path.resolve()
        if resolved.is_relative_to(root) or root.is_relative_to(resolved):
            raise BadInput(
                f"{str(root)!r} contains Podium's own files ({str(resolved)!r}), which no agent may access; "
                "pass the plugin's own folder with --root DIR"
            )


def job_of_files(
    podium: Podium,
    file: Path,
    *,
    profile: Path | None = None,
    root: Path | None = None,
    agent: str = "",
    inputs: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> PlaybookJob:
    """Load and validate the job. Raises `BadInput`, or `ConfigInvalid` with every problem and its location."""
    folder = root or podium.folders.project
    if not folder.is_dir():
        raise BadInput(f"folder {str(folder)!r} does not exist; pass another with --root DIR")
    inside = file.absolute().is_relative_to(podium.folders.project.absolute())
    loaded = read_playbook(file, podium.folders.project if inside else None)
    plugin = load_profile(profile or folder)
    if problems := loaded.disagreements(plugin):
        raise ConfigInvalid(str(file), problems)
    return playbook_job(
        podium, loaded.playbook, plugin, root=folder, agent=agent, inputs=inputs, dry_run=dry_run
    )


class PlaybookRequest(FrozenModel):
    """Options of a playbook run. Paths are relative to the project."""

    profile: str = ""
    """The plugin's profile. Empty: the nearest one upwards from the root."""
    root: str = ""
    """Folder of the plugin. Empty: the project's."""
    agent: str = ""
    """The agent of podium.yaml that follows it."""
    inputs: Annotated[dict[str, str], Few] = Field(default_factory=dict)
    """Values of the playbook's inputs, by name."""
    dry_run: bool = False
    """Work in a temporary copy and show what would change."""


async def submit(submission: Submission) -> Run:
    queue, options = submission.queue(), submission.options
    project = submission.podium.folders.project
    job = job_of_files(
        submission.podium,
        _project_path(project, submission.text, "the playbook"),
        profile=_project_path(project, options.profile, "the profile") if options.profile else None,
        root=_project_path(project, options.root, "root") if options.root else None,
        agent=options.agent,
        inputs=options.inputs,
        dry_run=options.dry_run,
    )
    return await submission.start(
        job.model_dump(mode="json"), task=job.playbook.head.name, queue=queue
    )


def _project_path(project: Path, written: str, what: str) -> Path:
    """Resolve a path of the project. Remote requests read no file outside of it."""
    if not written.strip():
        raise BadInput(f"{what} is missing; name a file of the project")
    path = project / written
    if not path.resolve().is_relative_to(project.resolve()):
        raise BadInput(f"{what} {written[:200]!r} is outside the project; name a path inside it")
    return path


def option_choices(podium: Podium) -> Mapping[str, Iterable[str]]:
    """List the values that options of a request can have."""
    return {"agent": podium.settings.agents}
