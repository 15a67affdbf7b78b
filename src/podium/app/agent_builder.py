"""Agents by name, built from `agents:` and `roles:` of podium.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import BadInput, ToolMissing
from podium.ports import Agent, ConfinementProvider, HookServers

if TYPE_CHECKING:
    from podium.agents import AgentDeps, AgentOptions
    from podium.agents.turn_step import RoleAgent
    from podium.app.app import Podium
    from podium.config.settings import AgentSettings


AgentBuilder = Callable[["Podium", "AgentSettings", "AgentOptions", "AgentDeps"], Agent]
"""Builds an agent of one kind of what podium.yaml says of it."""


async def agents_by_role(podium: Podium) -> Callable[[str], RoleAgent]:
    """Return a function that gives the agent of a role. Each is built when it is first asked for.

    The function raises `BadInput` for a role or an agent that podium.yaml does not have, and
    `NotPossibleNow` for an agent whose command, variables, address or options nobody has trusted.
    """
    from podium.agents import FailoverAgent
    from podium.agents.turn_step import RoleAgent

    doors = await podium.hook_doors()
    journal = await podium.journal()

    @cache
    def agent_for(role: str) -> RoleAgent:
        roles = podium.settings.roles
        if role not in roles:
            raise BadInput(f"podium.yaml has no role {role!r}; roles: {_listed(roles)}")
        names = roles[role].agents
        agents = [build_agent(podium, name, doors) for name in names]
        limits = {name: podium.settings.agents[name].limits for name in names}
        return RoleAgent(
            role=role,
            # Also for one alone: a conversation is then signed by whoever holds it.
            agent=FailoverAgent(agents, journal, limits),
            allowed_tools=roles[role].allowed_tools,
            own_tools=roles[role].own_tools,
            limits=limits[names[0]],
        )

    return agent_for


def build_agent(
    podium: Podium,
    name: str,
    doors: HookServers,
    *,
    mcp_only_confinement: ConfinementProvider | None = None,
    confinement: ConfinementProvider | None = None,
    unlisted: AgentSettings | None = None,
    command: tuple[str, ...] = (),
) -> Agent:
    """The agent that podium.yaml calls `name`, held to the contracts of its turns.

    With `mcp_only_confinement`, which confines its own processes, its own tools are disabled and it acts by MCP only.
    With `confinement` it keeps its tools, confined by that instead of the project's own.
    `unlisted` is what holds for an agent that podium.yaml does not have; `command` is how a person starts it
    instead.
    """
    from podium.agents import ContractedAgent

    if (make := podium.made_agents.get(name)) is not None:
        made = make(_within(agent_deps(podium, doors), mcp_only_confinement or confinement))
        return ContractedAgent(made, redact=podium.redactor.text)
    medium = build_medium(
        podium,
        name,
        doors,
        mcp_only_confinement=mcp_only_confinement,
        confinement=confinement,
        unlisted=unlisted,
        command=command,
    )
    listed = podium.settings.agents.get(name)
    if listed is not None and listed.kind == "scripted":
        # A script was written before the nonce was made.
        return ContractedAgent(medium, new_nonce=None, redact=podium.redactor.text)
    return ContractedAgent(medium, redact=podium.redactor.text)


def build_medium(
    podium: Podium,
    name: str,
    doors: HookServers,
    *,
    model: str = "",
    unlisted: AgentSettings | None = None,
    mcp_only_confinement: ConfinementProvider | None = None,
    confinement: ConfinementProvider | None = None,
    command: tuple[str, ...] = (),
) -> Agent:
    """The same as it is, for looking at its medium alone.

    `model` is used instead of its own; `unlisted` is what holds for an agent that podium.yaml does not have.
    """
    from podium.agents.kinds import ABOUT, ExplainedAgent

    settings = podium.settings.agents.get(name) or unlisted
    if settings is None:
        names = _listed(podium.settings.agents)
        raise BadInput(f"podium.yaml has no agent {name!r}; agents: {names}")
    build = KINDS.get(settings.kind)
    if build is None:
        raise BadInput(f"agent {name!r}: unknown kind {settings.kind!r}; kinds: {_listed(KINDS)}")
    options, about = options_of(podium, name, model), ABOUT[settings.kind]
    if command:
        options = options.model_copy(update={"command": command})
    if mcp_only_confinement is not None and about.is_program:
        options = _mcp_only(options)
    deps = _within(agent_deps(podium, doors), mcp_only_confinement or confinement)
    agent = build(podium, settings, options, deps)
    if not about.is_program:
        return agent  # an API agent says by itself whom it asked, and a script asks nobody
    return ExplainedAgent(agent, options, about, about.login_file(deps.user_home, deps.environ))


def options_of(podium: Podium, name: str, model: str = "") -> AgentOptions:
    """Options of an agent in podium.yaml, as far as a person trusts it."""
    from podium.agents import AgentOptions

    if name not in podium.settings.agents:
        return AgentOptions(name=name, model=model)
    settings, configuration = podium.settings.agents[name], podium.configuration
    return AgentOptions(
        name=name,
        model=model or settings.model,
        base_url=configuration.base_url_of(name),
        command=configuration.command_of(name),
        env=configuration.env_of(name),
        options=configuration.options_of(name),
    )


def _within(deps: AgentDeps, confinement: ConfinementProvider | None) -> AgentDeps:
    return deps if confinement is None else replace(deps, confinement_provider=confinement)


def _mcp_only(options: AgentOptions) -> AgentOptions:
    return options.model_copy(update={"options": {**options.options, "hands": False}})


def agent_deps(podium: Podium, doors: HookServers) -> AgentDeps:
    """Dependencies of agents."""
    from podium.agents import AgentDeps
    from podium.sandbox import hook_command, mcp_server_command

    return AgentDeps(
        launcher=podium.launcher,
        confinement_provider=podium.confinement_provider,
        doors=doors,
        transcripts=podium.transcripts,
        clock=podium.clock,
        hook_command=hook_command(),
        toolbox_command=mcp_server_command(),
        homes=podium.folders.homes,
        user_home=Path(podium.environ.get("HOME") or Path.home()),
        environ=podium.environ,
        redact_json=podium.redactor.json_text,
    )


def _scripted(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import AgentScript, ScriptedAgent
    from podium.config.located_yaml import read_located

    if not settings.script:
        raise BadInput(
            f"agent {options.name!r} is scripted: name its file with `script:` in podium.yaml"
        )
    script = read_located(podium.folders.project / settings.script).validated(AgentScript)
    return ScriptedAgent(
        options.name,
        script,
        deps.launcher,
        deps.doors,
        env=options.env,
        model=options.model or "script",
        transcripts=deps.transcripts,
        confinement_provider=deps.confinement_provider,
    )


def _gemini(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import GeminiCliAgent

    return GeminiCliAgent(options, deps)


def _claude(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import ClaudeCliAgent

    return ClaudeCliAgent(options, deps)


def _codex(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import CodexCliAgent

    return CodexCliAgent(options, deps)


def _opencode(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import OpencodeCliAgent

    return OpencodeCliAgent(options, deps)


def _command(
    podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps
) -> Agent:
    from podium.agents import CommandAgent

    return CommandAgent(options, deps)


def _acp(podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps) -> Agent:
    from podium.agents import AcpAgent

    return AcpAgent(options, deps)


def _api(podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps) -> Agent:
    from podium.agents import ApiAgent

    return ApiAgent(options, deps, podium.resolve_secret)


def _bus(podium: Podium, settings: AgentSettings, options: AgentOptions, deps: AgentDeps) -> Agent:
    try:
        from podium.agents.bus import BusAgent
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"agent {options.name!r} needs the package {error.name!r}; install it with `pip install 'podium[duet]'`"
        ) from None

    return BusAgent(options, deps, podium.bus)


KINDS: Mapping[str, AgentBuilder] = {
    "scripted": _scripted,
    "gemini": _gemini,
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "command": _command,
    "acp": _acp,
    "api": _api,
    "bus": _bus,
}
"""Kind → builder. A new medium is a builder and a line here."""


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"
