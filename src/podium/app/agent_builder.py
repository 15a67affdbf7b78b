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


async def players_by_role(podium: Podium) -> Callable[[str], RoleAgent]:
    """Gives the player of a role. Each is made when it is first asked for.

    What it gives raises `BadInput` for a role or an agent that podium.yaml does not have, and
    `NotPossibleNow` for an agent whose command, variables, address or options nobody has trusted.
    """
    from podium.agents import FailoverAgent
    from podium.agents.turn_step import RoleAgent

    doors = await podium.hook_doors()
    journal = await podium.journal()

    @cache
    def player_for(role: str) -> RoleAgent:
        known = podium.settings.roles
        if role not in known:
            raise BadInput(f"podium.yaml has no role {role!r}; roles: {_listed(known)}")
        names = known[role].agents
        agents = [build_agent(podium, name, doors) for name in names]
        limits = {name: podium.settings.agents[name].limits for name in names}
        return RoleAgent(
            role=role,
            # Also for one alone: a conversation is then signed by whoever holds it.
            agent=FailoverAgent(agents, journal, limits),
            allowed_tools=known[role].allowed_tools,
            own_tools=known[role].own_tools,
            limits=limits[names[0]],
        )

    return player_for


def build_agent(
    podium: Podium,
    name: str,
    doors: HookServers,
    *,
    desk: ConfinementProvider | None = None,
    fence: ConfinementProvider | None = None,
    unlisted: AgentSettings | None = None,
    command: tuple[str, ...] = (),
) -> Agent:
    """The agent that podium.yaml calls `name`, held to the contracts of its turns.

    With a `desk`, the fences of its own processes, it is without hands: CLIs have their tools switched off.
    With a `fence` it has them in there, and not in the project's own.
    `unlisted` is what holds for an agent that podium.yaml does not have; `command` is how a person starts it
    instead.
    """
    from podium.agents import ContractedAgent

    if (make := podium.made_agents.get(name)) is not None:
        made = make(_within(kit_of(podium, doors), desk or fence))
        return ContractedAgent(made, redact=podium.redactor.text)
    medium = build_medium(
        podium, name, doors, desk=desk, fence=fence, unlisted=unlisted, command=command
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
    desk: ConfinementProvider | None = None,
    fence: ConfinementProvider | None = None,
    command: tuple[str, ...] = (),
) -> Agent:
    """The same as it is, for looking at its medium alone.

    `model` is used instead of its own; `unlisted` is what holds for an agent that podium.yaml does not have.
    """
    from podium.agents.kinds import ABOUT, ExplainedAgent

    settings = podium.settings.agents.get(name) or unlisted
    if settings is None:
        known = _listed(podium.settings.agents)
        raise BadInput(f"podium.yaml has no agent {name!r}; agents: {known}")
    build = KINDS.get(settings.kind)
    if build is None:
        raise BadInput(
            f"agent {name!r}: this Podium has no agents of kind {settings.kind!r}; "
            f"kinds: {_listed(KINDS)}"
        )
    options, about = options_of(podium, name, model), ABOUT[settings.kind]
    if command:
        options = options.model_copy(update={"command": command})
    if desk is not None and about.is_program:
        options = _handless(options)
    kit = _within(kit_of(podium, doors), desk or fence)
    agent = build(podium, settings, options, kit)
    if not about.is_program:
        return agent  # an API agent says by itself whom it asked, and a script asks nobody
    return ExplainedAgent(agent, options, about, about.login_file(kit.user_home, kit.environ))


def options_of(podium: Podium, name: str, model: str = "") -> AgentOptions:
    """What podium.yaml says of an agent, as far as a person trusts it."""
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


def _within(kit: AgentDeps, fence: ConfinementProvider | None) -> AgentDeps:
    return kit if fence is None else replace(kit, confinement_provider=fence)


def _handless(options: AgentOptions) -> AgentOptions:
    return options.model_copy(update={"options": {**options.options, "hands": False}})


def kit_of(podium: Podium, doors: HookServers) -> AgentDeps:
    """What agents are run with."""
    from podium.agents import AgentDeps
    from podium.sandbox import hook_command, mcp_server_command

    return AgentDeps(
        launcher=podium.launcher,
        confinement_provider=podium.enclosures,
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
    podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps
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
        kit.launcher,
        kit.doors,
        env=options.env,
        model=options.model or "script",
        transcripts=kit.transcripts,
        confinement_provider=kit.confinement_provider,
    )


def _gemini(
    podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps
) -> Agent:
    from podium.agents import GeminiCliAgent

    return GeminiCliAgent(options, kit)


def _claude(
    podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps
) -> Agent:
    from podium.agents import ClaudeCliAgent

    return ClaudeCliAgent(options, kit)


def _codex(podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps) -> Agent:
    from podium.agents import CodexCliAgent

    return CodexCliAgent(options, kit)


def _opencode(
    podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps
) -> Agent:
    from podium.agents import OpencodeCliAgent

    return OpencodeCliAgent(options, kit)


def _command(
    podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps
) -> Agent:
    from podium.agents import CommandAgent

    return CommandAgent(options, kit)


def _acp(podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps) -> Agent:
    from podium.agents import AcpAgent

    return AcpAgent(options, kit)


def _api(podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps) -> Agent:
    from podium.agents import ApiAgent

    return ApiAgent(options, kit, podium.resolve_secret)


def _bus(podium: Podium, settings: AgentSettings, options: AgentOptions, kit: AgentDeps) -> Agent:
    try:
        from podium.agents.bus import BusAgent
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"agent {options.name!r} joins by a bus, which needs {error.name!r}: `pip install 'podium[duet]'`"
        ) from None

    return BusAgent(options, kit, podium.bus)


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
