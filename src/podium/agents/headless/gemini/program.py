"""Gemini CLI as a program: command line, version, files of its home, and its login; every decision is left to Podium.

The workspace counts as untrusted: the CLI then reads none of its settings, hooks, servers, skills,
agents and context files. Its own hooks it drops as well in that state, but not those of an
extension, and so the door is one.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, ValidationError

from podium.agents.deps import AgentDeps, AgentOptions, option_problems
from podium.agents.headless.gemini.records import LOGIN_HINT
from podium.agents.headless.gemini.tools import (
    OWN_TOOLS,
    RULES,
    SHELL,
    SUBAGENTS,
    agents_for,
    mcp_only_settings,
    tools_for,
)
from podium.agents.headless.home import CliLogin, Home, HomeFolders
from podium.agents.kinds import ABOUT
from podium.agents.program import version_of
from podium.core.errors import AgentNotLoggedIn, ConfigInvalid, ToolMissing
from podium.core.model import FrozenModel, Json
from podium.core.processes import ProcessSpec
from podium.core.turns import Turn
from podium.ports import Process

CONFIG = ".gemini"
SLUG = "workspace"
"""The CLI's name for the workspace, so that its conversations are found again."""
CONVERSATIONS = f"{CONFIG}/tmp/{SLUG}/chats"  # noqa: S108 — in the private home
EXTENSION = f"{CONFIG}/extensions/podium"

ANSWER_SECONDS = 10
"""Seconds the hook's client may take."""
READ_SECONDS = 15
"""Seconds the shell around it waits for the client's answer; then the answer is no."""
HOOK_SECONDS = 60
"""Seconds the CLI waits. Beyond that it would go on as if nothing had been asked."""

# Node drops what is still on its way through a pipe when a program ends itself. Writing that waits
# loses nothing; what the CLI starts shall not inherit it.
_WAIT_FOR_PIPE = "process.stdout._handle?.setBlocking?.(true);delete process.env.NODE_OPTIONS"
# In its debug mode, which tells how commands ended, it says megabytes of other things as well.
_MUTED = 'Object.defineProperty(console,"debug",{get:()=>()=>{},set(){}})'

Selected = Literal["gemini-api-key", "vertex-ai", "oauth-personal"]
"""Ways to log in, as its settings call them."""


class GeminiOptions(FrozenModel):
    """Options of a Gemini CLI agent in podium.yaml."""

    attempts: int = Field(default=2, ge=1, le=10)
    """Times a request to the model is made before the turn is given up."""
    stop_loops: bool = True
    """Let the CLI stop a model that says or does the same over and over."""
    hide_secrets: bool = True
    """Commands do not see variables whose names or values look secret, such as the key."""
    hands: bool = True
    """False: it has no tools of its own, and Podium performs everything."""


def lay_out(
    home: Home,
    turn: Turn,
    options: GeminiOptions,
    selected: Selected,
    door: Mapping[str, str],
    deps: AgentDeps,
    *,
    rules: str,
    server: dict[str, Json] | None = None,
) -> None:
    """Write the settings, the rules and the door's hooks of this turn. Nothing older is left.

    `server` is the toolbox of a CLI that has no hands.
    """
    settings = settings_for(options, selected, turn.limits.turns)
    if server is not None:
        settings, rules = mcp_only_settings(settings, server), RULES
    home.write_json(f"{CONFIG}/settings.json", settings)
    home.write(f"{CONFIG}/policies/podium.toml", rules)
    home.write_json(f"{CONFIG}/projects.json", {"projects": {_real(turn.workspace): SLUG}})
    about = {"name": "podium", "version": "1.0.0"}
    home.write_json(f"{EXTENSION}/gemini-extension.json", about)
    asked = OWN_TOOLS if server is not None else ""
    home.write_json(f"{EXTENSION}/hooks/hooks.json", hooks_for(deps.hook_command, door, asked))


def settings_for(
    options: GeminiOptions, selected: Selected, turns: int | None = None
) -> dict[str, Json]:
    """`turns` is how often it may ask its model; None: as often as it likes."""
    settings: dict[str, Json] = {
        "security": {
            "auth": {"selectedType": selected},
            # Off, because a headless CLI that asks itself would end; GEMINI_CLI_TRUST_WORKSPACE decides.
            "folderTrust": {"enabled": False},
            "disableYoloMode": True,
            "environmentVariableRedaction": {"enabled": options.hide_secrets},
        },
        "hooksConfig": {"enabled": True, "notifications": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "maxAttempts": options.attempts,
        },
        "skills": {"enabled": False},
        # A name in a prompt would be looked for everywhere, and the first file like it be read.
        "context": {"fileFiltering": {"enableRecursiveFileSearch": False}},
        "advanced": {"ignoreLocalEnv": True},
        # Otherwise a model mends an edit that does not fit, and something else is done than was judged.
        "tools": {"useRipgrep": False, "disableLLMCorrection": True},
    }
    model: dict[str, Json] = {"disableLoopDetection": not options.stop_loops}
    if turns is not None:
        model["maxSessionTurns"] = turns
    return {**settings, "model": model}


def headless_rules(turn: Turn) -> str:
    """Return the rules of what may run once the hook has allowed it; all else is not even offered."""
    return allowing_rules(tools_for(turn), agents_for(turn))


def allowing_rules(tools: tuple[str, ...], agents: tuple[str, ...] = ()) -> str:
    """The rules for a CLI whose hook is asked: these tools, commands and these subagents."""
    return "\n".join(
        [
            _rule(tools, "allow"),
            # With a pattern the CLI leaves out its own guesses at what is safe. `git` would be
            # refused in an untrusted folder.
            _rule((SHELL,), "allow", pattern=".", redirection=True),
            *(_agent_rule(name) for name in agents),
            _rule(("*",), "deny", priority=800, message="this role has no such tool"),
        ]
    )


def asking_rules(turn: Turn) -> str:
    """The rules for a CLI that asks its host: everything is asked for, or is not there."""
    asked = tuple(name for name in tools_for(turn) if name != SUBAGENTS)
    return "\n".join(
        [
            _rule(asked, "ask_user"),
            _rule((SHELL,), "ask_user", pattern=".", redirection=True),
            _rule(("*",), "deny", priority=800, message="this role has no such tool"),
        ]
    )


def _agent_rule(name: str) -> str:
    return _rule((SUBAGENTS,), "allow", pattern=f'"agent_name":"{name}"')


def _rule(
    tools: tuple[str, ...],
    decision: str,
    *,
    priority: int = 900,
    pattern: str = "",
    message: str = "",
    redirection: bool = False,
) -> str:
    # JSON's texts and lists are TOML's too.
    lines = ["[[rule]]", f"toolName = {json.dumps(list(tools))}", f'decision = "{decision}"']
    lines.append(f"priority = {priority}")
    if pattern:
        lines.append(f"argsPattern = {json.dumps(pattern)}")
    if redirection:
        lines.append("allowRedirection = true")
    if message:
        lines.append(f"denyMessage = {json.dumps(message)}")
    return "\n".join(lines) + "\n"


def hooks_for(command: tuple[str, ...], door: Mapping[str, str], asked: str = "") -> Json:
    """Ask before every tool, or before those whose name fits `asked`. How it ended, the CLI itself says."""
    env = {**door, "PODIUM_DOOR_DEADLINE": str(ANSWER_SECONDS)}
    hook: dict[str, Json] = {"hooks": [_hook("podium-before", _asking(command), env)]}
    return {"hooks": {"BeforeTool": [{**hook, "matcher": asked} if asked else hook]}}


def _hook(name: str, command: str, env: Mapping[str, str]) -> Json:
    timeout = HOOK_SECONDS * 1000
    return {
        "name": name,
        "type": "command",
        "command": command,
        "timeout": timeout,
        "env": dict(env),
    }


def _asking(command: tuple[str, ...]) -> str:
    """A line of bash that only an answer in time makes a yes.

    The CLI takes a hook that crashes, is killed, says something else or is late for a yes. It also
    waits for everybody who holds the hook's stderr, so the client gets a pipe of its own.
    """
    return (
        f"exec 3< <({shlex.join(command)} 2>&1); IFS= read -r -t {READ_SECONDS} -u 3 REPLY; "
        "case $REPLY in '{\"hookSpecificOutput\"'*'}') printf '%s' \"$REPLY\"; exit 0;; "
        # Anything else must not get through as it is: the CLI would read a JSON object as a decision.
        "'podium: '*) ;; *) REPLY=\"podium: Permission Denied: the hook said '$REPLY'\";; esac; "
        "printf '%s' \"$REPLY\" >&2; exit 2"
    )


def environment_for(
    options: AgentOptions, home: HomeFolders, identity: Mapping[str, str], *, trusted: bool = False
) -> dict[str, str]:
    """`trusted`: it sits in a folder with nothing in it. In another, servers are started only then."""
    served_at = {"GOOGLE_GEMINI_BASE_URL": options.base_url} if options.base_url else {}
    nowhere = str(home.path / CONFIG / "none.json")
    return {
        **served_at,
        **options.env,
        **identity,
        **home.env,
        "GEMINI_CLI_TRUST_WORKSPACE": str(trusted).lower(),
        # The machine's own settings could turn hooks off.
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": nowhere,
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": nowhere,
        "NODE_OPTIONS": _node_options(options.env.get("NODE_OPTIONS", "")),
        # It would start itself once more, and the first process ignore signals.
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GEMINI_TELEMETRY_ENABLED": "false",
        "NO_BROWSER": "1",
        "NO_COLOR": "1",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }


def _node_options(options: str) -> str:
    first = quote(f"{_WAIT_FOR_PIPE};{_MUTED}", safe="")
    return f"{options} --import data:text/javascript,{first}".strip()


def _real(workspace: str) -> str:
    return str(Path(workspace).resolve())


TRIED_VERSION = ABOUT["gemini"].tried
PACKAGE = "@google/gemini-cli"


def own_options(options: AgentOptions) -> GeminiOptions:
    """Return the agent's own options. Raises `ConfigInvalid`."""
    try:
        return GeminiOptions.model_validate(options.options)
    except ValidationError as error:
        raise ConfigInvalid(f"options of agent {options.name!r}", option_problems(error)) from None


def command_of(options: AgentOptions) -> tuple[str, ...]:
    return options.command or ("gemini",)


async def start(deps: AgentDeps, agent: str, spawn: ProcessSpec) -> Process:
    """Start the CLI. Raises `ToolMissing` with the way to install it."""
    try:
        return await deps.launcher.start(spawn)
    except ToolMissing as missing:
        raise _with_cure(agent, missing) from None


async def version_of_cli(options: AgentOptions, deps: AgentDeps, cwd: str) -> str:
    """The CLI's version. Read from its package: to ask the program takes more than a second."""
    command = command_of(options)
    packaged = _packaged_version(command[-1], deps.environ.get("PATH"))
    if packaged:
        return packaged
    try:
        return await version_of(deps.launcher, command, cwd)
    except ToolMissing as missing:
        raise _with_cure(options.name, missing) from None


def _packaged_version(program: str, path: str | None) -> str:
    executable = shutil.which(program, path=path) or program
    packages = [folder / "package.json" for folder in Path(executable).resolve().parents[:3]]
    return next((version for version in map(_version_in, packages) if version), "")


def _version_in(package: Path) -> str:
    try:
        about = json.loads(package.read_text())
        return str(about["version"]) if about["name"] == PACKAGE else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _with_cure(agent: str, missing: ToolMissing) -> ToolMissing:
    cure = f"`npm install -g {PACKAGE}` installs it"
    return ToolMissing(f"agent {agent!r} needs Gemini CLI: {missing}; {cure}")


TOKENS = "oauth_creds.json"
_REFRESHED = ("access_token", "refresh_token", "id_token", "expiry_date")


def logins_for(env: Mapping[str, str], deps: AgentDeps) -> tuple[CliLogin, ...]:
    """The files to copy; none when the settings themselves log it in."""
    configured = deps.environ.get("GEMINI_CLI_HOME")
    return logins_in(Path(configured) if configured else deps.user_home, env)


def logins_in(home: Path, env: Mapping[str, str]) -> tuple[CliLogin, ...]:
    """The files of a person's home to copy; none when the settings themselves log it in."""
    if _named_in(env) is not None:
        return ()
    folder = home / CONFIG
    return (
        CliLogin(folder / TOKENS, f"{CONFIG}/{TOKENS}", _REFRESHED),
        CliLogin(folder / "google_accounts.json", f"{CONFIG}/google_accounts.json"),
    )


def selected_login(agent: str, env: Mapping[str, str], copied: Collection[str]) -> Selected:
    """The way to log in, with the files that were copied. Raises `AgentNotLoggedIn` when there is none, before anything starts."""
    named = _named_in(env)
    if named is not None:
        return named
    if f"{CONFIG}/{TOKENS}" in copied:
        return "oauth-personal"
    raise AgentNotLoggedIn(f"agent {agent!r} has neither a key nor a login; {LOGIN_HINT}")


def _named_in(env: Mapping[str, str]) -> Selected | None:
    if env.get("GOOGLE_GENAI_USE_VERTEXAI", "").lower() == "true":
        return "vertex-ai"
    return "gemini-api-key" if env.get("GEMINI_API_KEY") else None
