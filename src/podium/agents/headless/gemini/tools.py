"""Gemini CLI's own tools: which a turn may use, and what each is at the gate."""

from __future__ import annotations

import json
from collections.abc import Mapping

from podium.agents.headless.changes import change_in_words
from podium.agents.headless.edits import whole_edit
from podium.agents.headless.searching import searched_folder
from podium.domain.asking import Turn
from podium.domain.model import Json
from podium.domain.own_tools import granted_words
from podium.ports import Translate

SHELL = "run_shell_command"
FILES = ("read_file", "write_file", "replace", "list_directory", "glob", "grep_search")
SUBAGENTS = "invoke_agent"
REPORTING = "complete_task"
"""How a subagent hands in its result. The agent itself is never offered it."""

AGENTS = ("codebase_investigator", "generalist", "cli_help")
"""Subagents it brings along, by the names that a prompt may call them with."""

_MORE = {
    "web_search": ("google_web_search",),
    "web_fetch": ("web_fetch",),
    "subagents": (SUBAGENTS, REPORTING),
    "write_todos": ("write_todos",),
    "update_topic": ("update_topic",),
}
"""What a role may be given by these words, or by what any other agent calls the same."""

KNOWN = (*_MORE, *AGENTS, *FILES, SHELL)
WITHOUT_SUBAGENTS = tuple(name for name in KNOWN if name not in ("subagents", *AGENTS))
"""What there is where subagents are not, because their tools would not be asked for."""

_SHOWN = frozenset({"file_path", "old_string", "new_string", "instruction"})
"""All else of an edit has an effect too. The instruction has none: the settings see to that."""

_NOTES = frozenset({"write_todos", "update_topic", REPORTING})


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The tools a turn may use whatever their arguments are; the shell has a rule of its own."""
    # A subagent that is named stands for itself, not for all of them.
    granted = granted_words(name for name in turn.own_tools or () if name not in AGENTS)
    wished = [tool for word, tools in _MORE.items() if word in granted for tool in tools]
    if agents_for(turn):
        wished.append(REPORTING)
    return tuple(dict.fromkeys((*FILES, *wished)))


def agents_for(turn: Turn) -> tuple[str, ...]:
    """Subagents that the role names one by one."""
    return tuple(name for name in AGENTS if name in (turn.own_tools or ()))


def translation_for(turn: Turn) -> Translate:
    """How the turn's calls are to be judged: a subagent that the role does not name is no subagent."""
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
    more = {name: value for name, value in arguments.items() if name not in _SHOWN}
    return change_in_words(arguments.get("old_string"), arguments.get("new_string"), more)
