"""Gemini CLI's own tools: which a turn may use, and what each is at the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from podium.domain.asking import Turn
from podium.domain.model import Json

SHELL = "run_shell_command"
FILES = ("read_file", "write_file", "replace", "list_directory", "glob", "grep_search")
SUBAGENTS = "invoke_agent"
REPORTING = "complete_task"
"""How a subagent hands in its result. The agent itself is never offered it."""

AGENTS = ("codebase_investigator", "generalist", "cli_help")
"""Subagents it brings along, by the names that a prompt may call them with."""

_MORE = {
    "web_search": ("google_web_search",),
    "google_web_search": ("google_web_search",),
    "web_fetch": ("web_fetch",),
    "subagents": (SUBAGENTS, REPORTING),
    SUBAGENTS: (SUBAGENTS, REPORTING),
    "write_todos": ("write_todos",),
    "update_topic": ("update_topic",),
}
_NOTES = frozenset({"write_todos", "update_topic", REPORTING})
_LONGEST_CHANGE = 4_000


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The tools a turn may use whatever their arguments are; the shell has a rule of its own."""
    wished = [tool for name in turn.own_tools or () for tool in _MORE.get(name, ())]
    if agents_for(turn):
        wished.append(REPORTING)
    return tuple(dict.fromkeys((*FILES, *wished)))


def agents_for(turn: Turn) -> tuple[str, ...]:
    """Subagents that the role names one by one."""
    return tuple(name for name in AGENTS if name in (turn.own_tools or ()))


def unknown_own_tools(turn: Turn) -> tuple[str, ...]:
    """A warning for each wish that nothing here stands for."""
    known = {*_MORE, *AGENTS, *FILES, SHELL}
    return tuple(
        f"Gemini CLI has no tool {name!r} that a role could be given; known: {', '.join(sorted(known))}"
        for name in turn.own_tools or ()
        if name not in known
    )


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
        return "list_files", {"path": arguments.get("dir_path") or "."}
    if tool == "grep_search":
        pattern = _renamed(arguments, pattern="pattern")
        return "search_text", {**pattern, "path": arguments.get("dir_path") or "."}
    return _translate_own(tool, arguments)


def _translate_own(tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    if tool == "google_web_search":
        return "web_search", _renamed(arguments, query="query")
    if tool == "web_fetch":
        return "web_fetch", _renamed(arguments, prompt="url", url="url")
    if tool == SUBAGENTS:
        return "ask_subagent", _renamed(arguments, agent_name="name", prompt="task")
    if tool in _NOTES:
        return "keep_notes", {"text": json.dumps(arguments)}
    return "own_tool", {"name": tool, "arguments": arguments}


def _renamed(arguments: Mapping[str, Json], **names: str) -> dict[str, Json]:
    return {new: arguments[old] for old, new in names.items() if old in arguments}


def _change(arguments: Mapping[str, Json]) -> str:
    """An edit in words that a person can judge: what goes and what comes."""
    return "\n".join(_changed_lines(arguments))[:_LONGEST_CHANGE]


def _changed_lines(arguments: Mapping[str, Json]) -> Iterator[str]:
    for name, sign in (("old_string", "-"), ("new_string", "+")):
        text = arguments.get(name)
        if isinstance(text, str):
            yield from (f"{sign}{line}" for line in text.splitlines())
