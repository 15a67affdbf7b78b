"""Gemini CLI's own tools: which a turn may use, how each ended by its records, and a prompt that calls none by accident."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.agents.headless.own_tools import (
    CALL_SECONDS,
    SERVER,
    change_text,
    searched_folder,
    whole_edit,
)
from podium.agents.outcome import plain_line
from podium.core.errors import ContextOverflow
from podium.core.model import Json
from podium.core.turns import Turn, granted_names
from podium.ports import Translate

SHELL = "run_shell_command"
FILES = ("read_file", "write_file", "replace", "list_directory", "glob", "grep_search")
SUBAGENTS = "invoke_agent"
REPORTING = "complete_task"
"""The tool by which a subagent hands in its result. The agent itself is never offered it."""

AGENTS = ("codebase_investigator", "generalist", "cli_help")
"""Subagents it brings along, by the names that a prompt may call them with."""

_MORE = {
    "web_search": ("google_web_search",),
    "web_fetch": ("web_fetch",),
    "subagents": (SUBAGENTS, REPORTING),
    "write_todos": ("write_todos",),
    "update_topic": ("update_topic",),
}
"""Grants of a role, by these words or by what any other agent calls the same."""

GRANTABLE_TOOLS = (*_MORE, *AGENTS, *FILES, SHELL)
WITHOUT_SUBAGENTS = tuple(name for name in GRANTABLE_TOOLS if name not in ("subagents", *AGENTS))
"""Grants where there are no subagents, because their tools would not be asked for."""

_JUDGED_ARGUMENTS = frozenset({"file_path", "old_string", "new_string", "instruction"})
"""All else of an edit has an effect too. The instruction has none: the settings see to that."""

_NOTES = frozenset({"write_todos", "update_topic", REPORTING})


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The tools a turn may use whatever their arguments are; the shell has a rule of its own."""
    # A subagent that is named stands for itself, not for all of them.
    granted = granted_names(name for name in turn.own_tools or () if name not in AGENTS)
    wished = [tool for grant, tools in _MORE.items() if grant in granted for tool in tools]
    if agents_for(turn):
        wished.append(REPORTING)
    return tuple(dict.fromkeys((*FILES, *wished)))


def agents_for(turn: Turn) -> tuple[str, ...]:
    """Subagents that the role names one by one."""
    return tuple(name for name in AGENTS if name in (turn.own_tools or ()))


def translation_for(turn: Turn) -> Translate:
    """Return the translation of the turn's calls: a subagent that the role does not name is no subagent."""
    tools, agents = tools_for(turn), agents_for(turn)

    def of_this_turn(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        not_named = SUBAGENTS not in tools and arguments.get("agent_name") not in agents
        if tool == SUBAGENTS and not_named:
            return "own_tool", {"name": tool, "arguments": arguments}
        return translate(tool, arguments)

    return of_this_turn


def translate(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """One of its tools as a call that the gate knows how to judge.

    What the model left out stays left out: the registry's own schema says what is missing.
    """
    if tool == SHELL:
        return "run_command", _renamed(arguments, command="command", dir_path="cwd")
    if tool == "write_file":
        return "write_file", _renamed(arguments, file_path="path", content="content")
    if tool == "replace":
        return "edit_file", {**_renamed(arguments, file_path="path"), "change": _change(arguments)}
    if tool == "read_file":
        return "read_file", _renamed(arguments, file_path="path")
    if tool in ("glob", "list_directory"):
        folder = searched_folder(arguments.get("dir_path"), arguments.get("pattern"))
        return "list_files", {"path": folder}
    if tool == "grep_search":
        pattern = _renamed(arguments, pattern="pattern")
        include = arguments.get("include_pattern") or arguments.get("include")
        folder = searched_folder(arguments.get("dir_path"), include)
        glob = include or ("*" if arguments.get("no_ignore") else None)
        return "search_text", {**pattern, "path": folder, **({"glob": glob} if glob else {})}
    return _translate_own(tool, arguments)


def _translate_own(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    if tool == "google_web_search":
        return "web_search", _renamed(arguments, query="query")
    if tool == "web_fetch":
        return "web_fetch", _renamed(arguments, prompt="url", url="url")
    if tool == SUBAGENTS:
        return "ask_subagent", _renamed(arguments, agent_name="name", prompt="task")
    if tool in _NOTES:
        return "keep_notes", {"text": whole_edit(json.dumps(arguments))}
    return "own_tool", {"name": tool, "arguments": arguments}


def _renamed(arguments: Mapping[str, Json], **names: str) -> dict[str, Json]:
    return {new: arguments[old] for old, new in names.items() if old in arguments}


def _change(arguments: Mapping[str, Json]) -> str:
    more = {name: value for name, value in arguments.items() if name not in _JUDGED_ARGUMENTS}
    return change_text(arguments.get("old_string"), arguments.get("new_string"), more)


RAN = "Output: "
IN_BACKGROUND = "Command moved to background"
ENDING = re.compile(
    r"\n(?:Exit Code: (\d{1,3})\n)?(?:Signal: (\S{1,40})\n)?(?:Background PIDs: [^\n]*\n)?"
    r"Process Group PGID: \d+\s*\Z"
)
"""The last lines about a command that ran, in debug mode. An exit code of 0 is not mentioned."""
MAX_OUTPUT = 4_000


@dataclass(frozen=True)
class ToolOutcome:
    """The end of a tool."""

    ok: bool
    result: dict[str, Json]
    error: str = ""


def outcome(tool: str, record: Mapping[str, Json]) -> ToolOutcome | None:
    """Return the outcome of a `tool_result`; None when it does not say how a command ended."""
    output = record.get("output")
    text = output if isinstance(output, str) else ""
    result: dict[str, Json] = {"done": False, "output": text[:MAX_OUTPUT]}
    if record.get("status") != "success":
        return ToolOutcome(False, result, _failure(record))
    if tool == SHELL:
        return _command(text, result)
    return ToolOutcome(True, {**result, "done": True})


def _failure(record: Mapping[str, Json]) -> str:
    error = record.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return plain_line(str(message or "failed"))


def _command(text: str, result: dict[str, Json]) -> ToolOutcome | None:
    if text.startswith(IN_BACKGROUND):
        return ToolOutcome(True, {**result, "done": True, "exit_code": None})
    # Only with these two the last lines are the CLI's own words and not what the command printed.
    ending = ENDING.search(text) if text.startswith(RAN) else None
    if ending is None:
        return _without_ending(text, result)
    code, signal = int(ending[1] or 0), ending[2]
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    ended = {**result, "exit_code": code, "output_sha256": digest}
    if signal or code:
        why = f"ended by signal {signal}" if signal else f"exit code {code}"
        return ToolOutcome(False, ended, why)
    return ToolOutcome(True, {**ended, "done": True})


def _without_ending(text: str, result: dict[str, Json]) -> ToolOutcome | None:
    """The CLI has checks of its own, and its records call what they stop a success."""
    if text.startswith(RAN) or not text:
        return None
    return ToolOutcome(False, result, plain_line(text))


MAX_BYTES = 8 * 1024 * 1024
"""Bytes that it reads of its input; the rest it would drop with a mere warning."""

# What the CLI takes for the name of a file behind an `@` that has no backslash before it.
_MENTION = re.compile(
    r"""(?<!\\)@((?:"[^"]*"|\\.|[^ \t\n\r,;!?()\[\]{}.]|\.(?!$|[ \t\n\r]))+)""", re.DOTALL
)


def prompt_for(agent: str, prompt: str, workspace: str) -> bytes:
    """Return its input. Raises `ContextOverflow` when the CLI would cut it.

    The CLI reads every file that a prompt names as `@file` into it, with no tool call that could
    be judged. Where there is such a file, the sign gets the backslash that keeps it a sign.
    """
    has_meaning: dict[str, bool] = {}

    def escape(mention: re.Match[str]) -> str:
        name = mention[1]
        if name not in has_meaning:
            has_meaning[name] = _means_something(name, workspace)
        return f"\\{mention[0]}" if has_meaning[name] else mention[0]

    escaped = _MENTION.sub(escape, prompt)
    # With a slash at the very beginning it would be one of its commands.
    data = (f"\n{escaped}" if escaped.startswith("/") else escaped).encode(errors="replace")
    if len(data) > MAX_BYTES:
        raise ContextOverflow(
            f"the prompt for agent {agent!r} has {len(data)} bytes, and Gemini CLI reads at most "
            f"{MAX_BYTES}; shorten it, or put it into a file in the workspace"
        )
    return data


def _means_something(name: str, workspace: str) -> bool:
    """Return whether the CLI would put something in the name's place: a file, a folder or a subagent."""
    plain = re.sub(r"\\(.)", r"\1", name).strip('"')
    if plain in AGENTS or "\0" in plain:
        return True
    try:
        return os.path.lexists(Path(workspace, plain))
    except (OSError, ValueError):
        return True


TOOLBOX = f"mcp_{SERVER}_"
"""Prefix that it puts before the names of the server's tools."""
OWN_TOOLS = f"^(?!{TOOLBOX})"
"""The tools that its hook has to ask for: all but Podium's, which are judged where they are performed."""

RULES = f"""[[rule]]
mcpName = "{SERVER}"
toolName = "*"
decision = "allow"
priority = 900

[[rule]]
toolName = "*"
decision = "deny"
priority = 800
denyMessage = "this agent has no tools of its own"
"""


def mcp_only_settings(settings: Mapping[str, Json], server: dict[str, Json]) -> Json:
    """Its settings, with no tool of its own and the toolbox as the only server."""
    own = settings.get("tools")
    return {
        **settings,
        "tools": {
            **(own if isinstance(own, dict) else {}),
            "core": [],
            # It would put a long result into a file, which it has nothing to read with.
            "truncateToolOutputThreshold": 0,
        },
        "mcp": {"allowed": [SERVER]},
        "mcpServers": {SERVER: {**server, "timeout": CALL_SECONDS * 1000, "trust": True}},
    }
