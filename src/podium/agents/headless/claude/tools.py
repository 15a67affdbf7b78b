"""Claude Code's tools: which it gets, and what each is called in Podium's registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from podium.agents.headless.edits import whole_edit
from podium.agents.headless.ending import not_given
from podium.agents.headless.searching import searched_folder
from podium.domain.asking import Turn
from podium.domain.model import Json
from podium.domain.own_tools import granted_words, unknown_words

ANSWER_TOOL = "StructuredOutput"
"""How the CLI takes an answer that has to fit a schema. Nothing happens by it."""

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
"""What a role may grant → the CLI's tool."""

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
"""What ripgrep searches for a type. With another it may be any file."""
_TEXTS = (("old_string", "-"), ("new_string", "+"), ("new_source", "+"))


def tools_for(turn: Turn) -> tuple[str, ...]:
    """The CLI's tools that this turn has. All others are not there at all."""
    allowed, granted = turn.allowed_tools, granted_words(turn.own_tools)
    working = [tool for tool, name in WORKING_TOOLS.items() if allowed is None or name in allowed]
    own = [tool for word, tool in _OWN_TOOLS.items() if word in granted]
    return tuple(sorted((*working, *own)))


def unknown_own_tools(agent: str, turn: Turn) -> tuple[str, ...]:
    """Warnings for what the role grants and the CLI does not have."""
    return not_given(agent, unknown_words(turn.own_tools, _OWN_TOOLS))


def translate(tool: str, arguments: Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """A use of one of the CLI's tools as a call that the gate knows how to judge.

    What the model left out stays left out: the registry's own schema says what is missing.
    """
    if tool == "Bash":
        return "run_command", _renamed(arguments, command="command", cwd="cwd")
    if tool == "Write":
        return "write_file", _renamed(arguments, file_path="path", content="content")
    if tool in ("Edit", "MultiEdit", "NotebookEdit"):
        place = "notebook_path" if tool == "NotebookEdit" else "file_path"
        beside = {name: value for name, value in arguments.items() if name != place}
        return "edit_file", {**_renamed(arguments, **{place: "path"}), "change": _change(beside)}
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
    each = [alone, *edits] if alone or not edits else edits
    return whole_edit("\n".join(line for n, edit in enumerate(each) for line in _lines(n, edit)))


def _lines(number: int, edit: Json) -> Iterable[str]:
    """One edit. Each has other lines than every other, or approving one would approve them all."""
    found = edit if isinstance(edit, dict) else {"edit": edit}
    texts = [name for name, _ in _TEXTS if isinstance(found.get(name), str)]
    # Not to replace all is what leaving it out means.
    rest = {
        name: value
        for name, value in found.items()
        if name not in texts and (name, value) != ("replace_all", False)
    }
    if number or rest:
        yield f"@@ {json.dumps(rest, sort_keys=True)}" if rest else "@@"
    for name, sign in _TEXTS:
        if name in texts:
            yield from (f"{sign}{line}" for line in found[name].split("\n"))
