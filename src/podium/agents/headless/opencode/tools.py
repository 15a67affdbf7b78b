"""opencode's own tools, as the registered tools that they are."""

from __future__ import annotations

import json
from collections.abc import Callable

from podium.domain.asking import Turn
from podium.domain.model import Json

Arguments = dict[str, Json]
Translated = tuple[str, Arguments]

LONGEST_CHANGE = 2_000

GRANTS = {
    "webfetch": ("web_fetch", "webfetch"),
    "websearch": ("web_search", "websearch"),
    "codesearch": ("web_search", "codesearch"),
    "task": ("subagents", "ask_subagent", "task"),
    "skill": ("skill",),
    "lsp": ("lsp",),
}
"""opencode's name of a permission → the words by which a role's `own_tools` grants it."""


def permission_for(turn: Turn) -> Arguments:
    """What opencode itself lets through to the door: files and shell, and what the role was given."""
    granted = set(turn.own_tools or ())
    own = {name: "allow" if granted & set(words) else "deny" for name, words in GRANTS.items()}
    # Nobody is there to be asked, and paths outside the workspace are the gate's to judge.
    return {
        "*": "allow",
        "external_directory": "allow",
        "doom_loop": "allow",
        "question": "deny",
        "plan_enter": "deny",
        "plan_exit": "deny",
        **own,
    }


def unknown_own_tools(turn: Turn) -> tuple[str, ...]:
    """Warnings for what a role was given and opencode does not have."""
    known = {word for words in GRANTS.values() for word in words}
    return tuple(
        f"opencode has no tool {name!r} of its own"
        for name in turn.own_tools or ()
        if name not in known
    )


def translate(tool: str, arguments: Arguments) -> Translated:
    """What a call of opencode is in Podium's words. What nobody knows is an `own_tool`."""
    known = _TRANSLATIONS.get(tool)
    if known is None:
        return "own_tool", {"name": tool, "arguments": arguments}
    return known(arguments)


def _bash(arguments: Arguments) -> Translated:
    wish: Arguments = {"command": arguments.get("command")}
    if arguments.get("workdir"):
        wish["cwd"] = arguments["workdir"]
    return "run_command", wish


def _edit(arguments: Arguments) -> Translated:
    change = f"- {arguments.get('oldString', '')}\n+ {arguments.get('newString', '')}"
    return "edit_file", {"path": arguments.get("filePath"), "change": change[:LONGEST_CHANGE]}


def _patch(arguments: Arguments) -> Translated:
    if arguments.get("kind") == "delete":
        return "delete_file", {"path": arguments.get("path")}
    change = str(arguments.get("change", ""))
    return "edit_file", {"path": arguments.get("path"), "change": change[:LONGEST_CHANGE]}


def _search(arguments: Arguments) -> Translated:
    return "search_text", {"pattern": arguments.get("pattern"), "path": _folder(arguments)}


def _task(arguments: Arguments) -> Translated:
    name, task = arguments.get("subagent_type"), arguments.get("prompt")
    return "ask_subagent", {"name": name, "task": task}


def _notes(arguments: Arguments) -> Translated:
    return "keep_notes", {"text": json.dumps(arguments)[:LONGEST_CHANGE]}


def _listing(arguments: Arguments) -> Translated:
    return "list_files", {"path": _folder(arguments)}


def _folder(arguments: Arguments) -> Json:
    return arguments.get("path") or "."


_TRANSLATIONS: dict[str, Callable[[Arguments], Translated]] = {
    "bash": _bash,
    "read": lambda given: ("read_file", {"path": given.get("filePath")}),
    "write": lambda given: (
        "write_file",
        {"path": given.get("filePath"), "content": given.get("content")},
    ),
    "edit": _edit,
    "apply_patch": _patch,
    "glob": _listing,
    "list": _listing,
    "grep": _search,
    "webfetch": lambda given: ("web_fetch", {"url": given.get("url")}),
    "websearch": lambda given: ("web_search", {"query": given.get("query")}),
    "codesearch": lambda given: ("web_search", {"query": given.get("query")}),
    "task": _task,
    "todowrite": _notes,
    "todoread": _notes,
    # Where a call of the model that fits no tool ends up; it only says so.
    "invalid": _notes,
}
