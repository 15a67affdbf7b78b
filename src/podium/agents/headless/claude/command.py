"""Command line of Claude Code: switches and variables that leave every decision to Podium, and the tools it gets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from podium.agents.deps import AgentOptions, problems_line
from podium.agents.headless.home import CliLogin, Home, HomeFolders
from podium.agents.headless.own_tools import (
    CALL_SECONDS,
    SERVER,
    START_SECONDS,
    searched_folder,
    whole_edit,
)
from podium.agents.outcome import missing_tools
from podium.core.errors import AgentRejected, BadInput
from podium.core.model import FrozenModel, Json
from podium.core.turns import Turn, granted_names, unknown_names

ANSWER_TOOL = "StructuredOutput"
"""The CLI's tool for an answer that has to fit a schema. It has no effect."""

WORKING_TOOLS = {
    "Bash": "run_command",
    "Edit": "edit_file",
    "Glob": "list_files",
    "Grep": "search_text",
    "NotebookEdit": "edit_file",
    "Read": "read_file",
    "Write": "write_file",
}
_OWN_TOOLS = {"web_search": "WebSearch", "web_fetch": "WebFetch", "subagents": "Task"}
"""Grants of a role → the CLI's tool."""

_NOTES = frozenset(
    {
        "TodoWrite",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "EnterPlanMode",
        "ExitPlanMode",
    }
)
_KINDS_OF_FILES: dict[str, str] = {
    "py": "*.{py,pyi}",
    "js": "*.{js,jsx,cjs,mjs,vue}",
    "ts": "*.{ts,tsx,cts,mts}",
    "rust": "*.rs",
    "go": "*.go",
    "java": "*.{java,jsp,jspx,properties}",
}
"""Files that ripgrep searches for a type. With another type it may be any file."""
_TEXTS = (("old_string", "-"), ("new_string", "+"), ("new_source", "+"))


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The CLI's tools that this turn has. All others are not there at all."""
    allowed, granted = turn.allowed_tools, granted_names(turn.own_tools)
    working = [tool for tool, name in WORKING_TOOLS.items() if allowed is None or name in allowed]
    own = [tool for grant, tool in _OWN_TOOLS.items() if grant in granted]
    return tuple(sorted((*working, *own)))


def unknown_own_tools(agent: str, turn: Turn) -> tuple[str, ...]:
    """Warnings for what the role grants and the CLI does not have."""
    return missing_tools(agent, unknown_names(turn.own_tools, _OWN_TOOLS))


def translate(tool: str, arguments: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """A use of one of the CLI's tools as a call that the gate knows how to judge.

    What the model left out stays left out: the registry's own schema says what is missing.
    """
    if tool == "Bash":
        return "run_command", _renamed(arguments, command="command", cwd="cwd")
    if tool == "Write":
        return "write_file", _renamed(arguments, file_path="path", content="content")
    if tool in ("Edit", "MultiEdit", "NotebookEdit"):
        path_key = "notebook_path" if tool == "NotebookEdit" else "file_path"
        beside = {name: value for name, value in arguments.items() if name != path_key}
        return "edit_file", {**_renamed(arguments, **{path_key: "path"}), "change": _change(beside)}
    if tool == "Read":
        return "read_file", _renamed(arguments, file_path="path")
    if tool in ("Glob", "LS"):
        folder = searched_folder(arguments.get("path"), arguments.get("pattern"))
        return "list_files", {"path": folder}
    if tool == "Grep":
        glob = arguments.get("glob") or _KINDS_OF_FILES.get(str(arguments.get("type")))
        named = {"glob": glob} if glob else {}
        folder = searched_folder(arguments.get("path"), arguments.get("glob"))
        return "search_text", {**_renamed(arguments, pattern="pattern"), "path": folder, **named}
    return _translate_own(tool, arguments)


def _translate_own(tool: str, arguments: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    if tool == "WebSearch":
        return "web_search", _renamed(arguments, query="query")
    if tool == "WebFetch":
        return "web_fetch", _renamed(arguments, url="url")
    if tool in ("Task", "Agent"):
        name = arguments.get("subagent_type") or "general-purpose"
        return "ask_subagent", {"name": name, **_renamed(arguments, prompt="task")}
    if tool in _NOTES:
        return "keep_notes", {"text": json.dumps(dict(arguments))}
    return "own_tool", {"name": tool, "arguments": dict(arguments)}


def _renamed(arguments: Mapping[str, Json], **names: str) -> dict[str, Json]:
    return {new: arguments[old] for old, new in names.items() if old in arguments}


def _change(beside: dict[str, Json]) -> str:
    """An edit in words that a person can judge: what goes and what comes, whole."""
    several = beside.get("edits")
    edits = several if isinstance(several, list) else []
    alone = {name: value for name, value in beside.items() if name != "edits" or not edits}
    parts = [alone, *edits] if alone or not edits else edits
    return whole_edit("\n".join(line for n, edit in enumerate(parts) for line in _lines(n, edit)))


def _lines(number: int, edit: Json) -> Iterable[str]:
    """One edit. Each has other lines than every other, or approving one would approve them all."""
    fields = edit if isinstance(edit, dict) else {"edit": edit}
    texts = [name for name, _ in _TEXTS if isinstance(fields.get(name), str)]
    # Not to replace all is what leaving it out means.
    rest = {
        name: value
        for name, value in fields.items()
        if name not in texts and (name, value) != ("replace_all", False)
    }
    if number or rest:
        yield f"@@ {json.dumps(rest, sort_keys=True)}" if rest else "@@"
    for name, sign in _TEXTS:
        if name in texts:
            yield from (f"{sign}{line}" for line in fields[name].split("\n"))


CONFIG = ".claude"
"""Its own folder, from the private home on."""
RETRIES = 2
ALONE = ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
"""Nothing of the workspace or the home configures it: settings, hooks, servers, commands."""

_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Without it a wrong key is tried for minutes.
    "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
}
_GATED = {
    # `@/path` in a prompt would read that file with no tool call at all.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # What runs in the background reports its end after the turn's.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_WORKFLOWS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    # A command is judged for the folder it runs in: `cd` must not last.
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
    # Makes it tell how long a provider asks to wait instead of only failing; we do not wait.
    "CLAUDE_CODE_RETRY_WATCHDOG": "1",
}


class ClaudeSettings(FrozenModel):
    """The agent's `options` in podium.yaml that only Claude Code has."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """Amount of thinking. None: its default."""
    append_system_prompt: str = ""
    """Said to the model behind the CLI's own instructions, in every turn."""
    hands: bool = True
    """False: it has no tools of its own, and Podium performs everything."""

    @classmethod
    def of(cls, options: AgentOptions) -> ClaudeSettings:
        """Raises `BadInput` for what it does not know."""
        try:
            return cls.model_validate(options.options)
        except ValidationError as error:
            names = ", ".join(cls.model_fields)
            raise BadInput(
                f"agent {options.name!r}: options are not valid: {problems_line(error)}; known options: {names}"
            ) from None


def argv_for(
    options: AgentOptions, turn: Turn, tools: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """`tools` are the switches that say which tools there are. None: those of its own that the turn has."""
    own = ("--tools", ",".join(tools_for(turn)), "--settings", _settings(turn))
    return (
        *(options.command or ("claude",)),
        *("-p", "--verbose", "--include-partial-messages"),
        *("--input-format", "stream-json", "--output-format", "stream-json"),
        *("--permission-prompt-tool", "stdio", "--permission-mode", "default"),
        *ALONE,
        *(own if tools is None else tools),
        *_turn_switches(options, turn),
    )


def environment_for(options: AgentOptions, home: HomeFolders) -> dict[str, str]:
    served_at = {"ANTHROPIC_BASE_URL": options.base_url} if options.base_url else {}
    return {
        **_QUIET,
        **served_at,
        **options.env,
        **home.env,
        **_GATED,
        "CLAUDE_CONFIG_DIR": str(home.path / CONFIG),
        "CLAUDE_CODE_TMPDIR": str(home.temporary),
    }


def has_login_in(env: Mapping[str, str]) -> bool:
    """Return whether the settings themselves log it in, so that no login has to be copied."""
    named = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    return any(env.get(name) for name in named)


def login_in(folder: Path) -> CliLogin:
    """The file that keeps a person logged in whose own folder this is."""
    names = ("accessToken", "refreshToken", "expiresAt")
    return CliLogin(
        source=folder / ".credentials.json",
        target=f"{CONFIG}/.credentials.json",
        refreshable=tuple(f"claudeAiOauth.{name}" for name in names),
    )


def schema_for(turn: Turn) -> dict[str, Json] | None:
    """The contract as the CLI takes it. It only takes objects."""
    if turn.contract is None:
        return None
    schema = turn.contract.model_json_schema()
    return schema if schema.get("type") == "object" else None


def _settings(turn: Turn) -> str:
    """Every use of a tool is asked for, also of those that it would allow by itself."""
    return json.dumps({"permissions": {"ask": list(tools_for(turn))}})


def _turn_switches(options: AgentOptions, turn: Turn) -> tuple[str, ...]:
    limits, schema = turn.limits, schema_for(turn)
    switches: dict[str, str] = {}
    if turn.session is not None:
        switches["--resume"] = _conversation(turn.session)
    if schema is not None:
        switches["--json-schema"] = json.dumps(schema)
    if limits.turns is not None:
        switches["--max-turns"] = str(limits.turns)
    if limits.usd is not None:
        switches["--max-budget-usd"] = f"{limits.usd:.6f}"
    return (*model_switches(options), *(argument for pair in switches.items() for argument in pair))


def model_switches(options: AgentOptions) -> tuple[str, ...]:
    """Return the switches for the model and its effort. Raises `BadInput` for unknown options."""
    own = ClaudeSettings.of(options)
    switches = {
        "--effort": own.effort,
        "--append-system-prompt": own.append_system_prompt,
        "--model": options.model,
    }
    return tuple(
        argument for name, value in switches.items() if value for argument in (name, value)
    )


def _conversation(session: str) -> str:
    try:
        return str(uuid.UUID(session))
    except ValueError:
        raise AgentRejected(
            f"{session!r} is not a conversation of Claude Code; start a new one"
        ) from None


TOOLBOX = f"mcp__{SERVER}__"
"""Prefix that it puts before the names of the server's tools."""
SERVERS = "podium-servers.json"

PATIENCE = {
    "MCP_TIMEOUT": str(START_SECONDS * 1000),
    "MCP_CONNECT_TIMEOUT_MS": str(START_SECONDS * 1000),
    "MCP_TOOL_TIMEOUT": str(CALL_SECONDS * 1000),
    # Otherwise it begins without the server's tools, or offers them behind a search.
    "MCP_CONNECTION_NONBLOCKING": "0",
    "ENABLE_TOOL_SEARCH": "false",
    # It would put a long result into a file, which it has nothing to read with.
    "MAX_MCP_OUTPUT_TOKENS": "1000000",
}


def mcp_only_switches(home: Home, server: dict[str, Json]) -> tuple[str, ...]:
    """The switches in place of those that name its own tools. The server's token stands in a private file."""
    servers = home.write_json(SERVERS, {"mcpServers": {SERVER: {"type": "stdio", **server}}})
    asked = json.dumps({"permissions": {"ask": [f"{TOOLBOX}*"]}})
    return ("--tools", "", "--mcp-config", str(servers), "--settings", asked)
