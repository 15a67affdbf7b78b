"""opencode's own tools, as the registered tools that they are."""

from __future__ import annotations

import json
from collections.abc import Callable

from podium.agents.deps import AgentOptions
from podium.agents.headless.native_tools import change_text, whole_edit
from podium.core.model import Json
from podium.core.turns import Turn, granted_names

Arguments = dict[str, Json]
Translated = tuple[str, Arguments]

GRANTS = {
    "webfetch": ("web_fetch",),
    "websearch": ("web_search",),
    "codesearch": ("web_search", "codesearch"),
    "task": ("subagents", "ask_subagent"),
    "skill": ("skill",),
    "lsp": (),
}
"""opencode's name of a permission → the words by which a role's `own_tools` grants it."""

SEARCHES = (
    "OPENCODE_ENABLE_EXA",
    "OPENCODE_EXPERIMENTAL_EXA",
    "OPENCODE_ENABLE_PARALLEL",
    "OPENCODE_EXPERIMENTAL_PARALLEL",
    "OPENCODE_EXPERIMENTAL",
)
"""Variables that let it search the web. Without them it does so for its maker's own models alone."""


def permission_for(turn: Turn) -> Arguments:
    """Return what opencode itself lets through to the door: files and shell, and the role's grants."""
    granted = granted_names(turn.own_tools)
    own = {name: "allow" if granted & set(grants) else "deny" for name, grants in GRANTS.items()}
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


def grantable_tools(options: AgentOptions) -> tuple[str, ...]:
    """Return what a role can be granted with these settings."""
    its_own = options.model.startswith("opencode/") and not options.base_url
    searches = its_own or any(options.env.get(name) for name in SEARCHES)
    search = ("web_search", "codesearch") if searches else ()
    return (*GRANTS["webfetch"], *GRANTS["task"], *GRANTS["skill"], *search)


def translate(tool: str, arguments: Arguments) -> Translated:
    """Return a call of opencode as a registered tool. An unknown one is an `own_tool`."""
    translation = _TRANSLATIONS.get(tool)
    if translation is None:
        return "own_tool", {"name": tool, "arguments": arguments}
    return translation(arguments)


def _bash(arguments: Arguments) -> Translated:
    command: Arguments = {"command": arguments.get("command")}
    if arguments.get("workdir"):
        command["cwd"] = arguments["workdir"]
    return "run_command", command


def _edit(arguments: Arguments) -> Translated:
    judged = ("filePath", "oldString", "newString")
    more = {name: value for name, value in arguments.items() if name not in judged}
    change = change_text(arguments.get("oldString"), arguments.get("newString"), more)
    return "edit_file", {"path": arguments.get("filePath"), "change": change}


def _patch(arguments: Arguments) -> Translated:
    if arguments.get("kind") == "delete":
        return "delete_file", {"path": arguments.get("path")}
    change = whole_edit(str(arguments.get("change", "")))
    return "edit_file", {"path": arguments.get("path"), "change": change}


def _search(arguments: Arguments) -> Translated:
    query = {"pattern": arguments.get("pattern"), "path": _folder(arguments)}
    named = arguments.get("include")
    return "search_text", {**query, "glob": named} if named else query


def _task(arguments: Arguments) -> Translated:
    name, task = arguments.get("subagent_type"), arguments.get("prompt")
    return "ask_subagent", {"name": name, "task": task}


def _notes(arguments: Arguments) -> Translated:
    return "keep_notes", {"text": whole_edit(json.dumps(arguments))}


def _listing(arguments: Arguments) -> Translated:
    return "list_files", {"path": _folder(arguments)}


def _folder(arguments: Arguments) -> Json:
    return arguments.get("path") or "."


_TRANSLATIONS: dict[str, Callable[[Arguments], Translated]] = {
    "bash": _bash,
    "read": lambda arguments: ("read_file", {"path": arguments.get("filePath")}),
    "write": lambda arguments: (
        "write_file",
        {"path": arguments.get("filePath"), "content": arguments.get("content")},
    ),
    "edit": _edit,
    "apply_patch": _patch,
    "glob": _listing,
    "list": _listing,
    "grep": _search,
    "webfetch": lambda arguments: ("web_fetch", {"url": arguments.get("url")}),
    "websearch": lambda arguments: ("web_search", {"query": arguments.get("query")}),
    "codesearch": lambda arguments: ("web_search", {"query": arguments.get("query")}),
    "task": _task,
    "todowrite": _notes,
    "todoread": _notes,
    # Where a call of the model that fits no tool ends up; it only says so.
    "invalid": _notes,
}
