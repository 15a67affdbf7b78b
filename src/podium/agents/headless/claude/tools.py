"""Claude Code's tools: which it gets, and what each is called in Podium's registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from podium.domain.asking import Turn
from podium.domain.model import Json

ANSWER_TOOL = "StructuredOutput"
"""How the CLI takes an answer that has to fit a schema. Nothing happens by it."""

_WORKING_TOOLS = {
    "Bash": "run_command",
    "Edit": "edit_file",
    "Glob": "list_files",
    "Grep": "search_text",
    "NotebookEdit": "edit_file",
    "Read": "read_file",
    "Write": "write_file",
}
_OWN_TOOLS = {
    "web_search": ("WebSearch", "web_search"),
    "google_web_search": ("WebSearch", "web_search"),
    "web_fetch": ("WebFetch", "web_fetch"),
    "subagents": ("Task", "ask_subagent"),
    "codebase_investigator": ("Task", "ask_subagent"),
}
"""What a role may name → the CLI's tool, and what it is judged as."""

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
_LONGEST_CHANGE = 20_000


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The CLI's tools that this turn has. All others are not there at all."""
    named = [_OWN_TOOLS[name] for name in turn.own_tools or () if name in _OWN_TOOLS]
    judged_as = {**_WORKING_TOOLS, **dict(named)}
    allowed = turn.allowed_tools
    return tuple(
        sorted(tool for tool, name in judged_as.items() if allowed is None or name in allowed)
    )


def unknown_own_tools(turn: Turn) -> tuple[str, ...]:
    return tuple(
        f"Claude Code has no tool for {name!r}; it goes without"
        for name in turn.own_tools or ()
        if name not in _OWN_TOOLS
    )


def translate(tool: str, arguments: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """A use of one of the CLI's tools as a call that the gate knows how to judge.

    What the model left out stays left out: the registry's own schema says what is missing.
    """
    if tool == "Bash":
        return "run_command", _renamed(arguments, command="command", cwd="cwd")
    if tool == "Write":
        return "write_file", _renamed(arguments, file_path="path", content="content")
    if tool in ("Edit", "MultiEdit", "NotebookEdit"):
        path = _renamed(arguments, file_path="path", notebook_path="path")
        return "edit_file", {**path, "change": _change(arguments)}
    if tool == "Read":
        return "read_file", _renamed(arguments, file_path="path")
    if tool in ("Glob", "LS"):
        return "list_files", {"path": arguments.get("path") or "."}
    if tool == "Grep":
        pattern = _renamed(arguments, pattern="pattern")
        return "search_text", {**pattern, "path": arguments.get("path") or "."}
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


def _change(arguments: Mapping[str, Json]) -> str:
    """An edit in words that a person can judge: what goes and what comes."""
    edits = arguments.get("edits")
    each = edits if isinstance(edits, list) else [arguments]
    lines = [line for edit in each if isinstance(edit, dict | Mapping) for line in _lines(edit)]
    return "\n".join(lines)[:_LONGEST_CHANGE]


def _lines(edit: Mapping[str, Json]) -> Iterable[str]:
    for name, sign in (("old_string", "-"), ("new_string", "+"), ("new_source", "+")):
        text = edit.get(name)
        if isinstance(text, str) and text:
            yield from (f"{sign}{line}" for line in text.splitlines())
