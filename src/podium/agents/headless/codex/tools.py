"""Codex's tools as registered tools, what of a turn came before the gate, and codex with its own tools off.

With any server codex offers three tools that read what servers call resources. There is no switch
for them. The toolbox has no resources, and the hook refuses them like all that is codex's own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.agents.headless.own_tools import CALL_SECONDS, SERVER, START_SECONDS, whole_edit
from podium.core.errors import NotPossibleNow
from podium.core.model import Json
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.ports import Launcher

WITHOUT_SANDBOX = "run_without_sandbox"
"""Grant in a role's `own_tools` for commands that shall leave codex's own sandbox."""

OWN_TOOLS = ("web_search", "subagents", WITHOUT_SANDBOX)
"""Grants of a role for codex's own tools, beside files and shell."""

_END_OF_PATCH = "*** End Patch"
_NOTES = ("update_plan", "clockcurr_time", "clock__curr_time", "sleep", "wait")


@dataclass
class _Use:
    """One use of a tool, as codex counts them."""

    cwd: str = ""
    paths: set[str] = field(default_factory=set)
    is_command: bool = False
    questions: int = 0


class Judged:
    """Remembers what was asked for each use of a tool, so that what happens can be held against it."""

    def __init__(self, workspace: str = "") -> None:
        """Without a workspace paths stay as codex gives them."""
        self._workspace = workspace
        self._uses: dict[str, _Use] = {}

    def translate(self, tool: str, arguments: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        """The registered tool for one of codex's. What is not known is an `own_tool`."""
        fields = {name: value for name, value in arguments.items() if name != "use"}
        use = self._uses.setdefault(str(arguments.get("use") or ""), _Use())
        use.questions += 1
        if tool == "Bash":
            return self._command(use, fields)
        if tool == "apply_patch":
            return self._change(use, fields)
        if tool == "view_image":
            return "read_file", {"path": fields.get("path")}
        if tool in _NOTES:
            return "keep_notes", {"text": whole_edit(json.dumps(fields))}
        if tool == "web_search":
            return "web_search", {"query": str(fields.get("query") or "")}
        if "agent" in tool or tool.startswith("collaboration"):
            # The tool's name, not one of the model's choice: a role may grant agents by name.
            return "ask_subagent", {"name": tool, "task": _task(fields)}
        return "own_tool", {"name": tool, "arguments": fields}

    def refs(self, use: str) -> list[str]:
        """The names under which the door knows this use."""
        asked = self._uses.get(use, _Use())
        parts = 0 if asked.is_command else asked.questions
        return [use, escalated(use), *(f"{use}#{number}" for number in range(parts))]

    def difference(self, item: dict[str, Any]) -> str:
        """Return how this act of codex differs from what was judged; empty when it does not."""
        use = self._uses.get(str(item.get("id")))
        if use is None:
            return "it was not checked"
        if item.get("type") == "commandExecution" and not _same(use.cwd, str(item.get("cwd"))):
            return f"it runs in {item.get('cwd')!r} instead of {use.cwd!r}"
        if item.get("type") == "fileChange":
            return _unjudged(use.paths, item.get("changes"))
        return ""

    def _command(self, use: _Use, fields: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        use.is_command = True
        use.cwd = str(fields.get("cwd") or "")
        return "run_command", {"command": fields.get("command"), "cwd": self._inside(use.cwd)}

    def _change(self, use: _Use, fields: dict[str, Json]) -> tuple[str, dict[str, Json]]:
        path, change = str(fields.get("path")), str(fields.get("change") or "")
        operation = str(fields.get("operation"))
        use.paths.add(_real(path))
        path = self._inside(path)
        content = _added(change) if operation == "add" else None
        if content is not None:
            return "write_file", {"path": path, "content": content}
        if operation == "delete":
            return "delete_file", {"path": path}
        return "edit_file", {"path": path, "change": whole_edit(change)}

    def _inside(self, path: str) -> str:
        """The path from the workspace on, as other agents give it, when it leads there plainly."""
        workspace = self._workspace
        return os.path.relpath(path, workspace) if workspace and _below(path, workspace) else path


def _below(path: str, folder: str) -> bool:
    plain = os.path.normpath(path)
    return ".." not in path.split("/") and (plain == folder or plain.startswith(f"{folder}/"))


def escalated(use: str) -> str:
    """The door's name for the wish to leave the sandbox with this use."""
    return f"{use}!"


def _added(change: str) -> str | None:
    """The content of a new file; None for a patch that says more, or other, than that."""
    # Not `splitlines`: what it takes for the end of a line is not always one for codex.
    lines = change.split("\n")
    added = [line[1:] for line in lines if line.startswith("+")]
    beside = [line for line in lines if not line.startswith("+")]
    if any(line.strip() not in ("", _END_OF_PATCH) for line in beside):
        return None
    return "".join(f"{line}\n" for line in added)


def _task(fields: dict[str, Json]) -> str:
    """Return the inner agent's prompt, then the other arguments."""
    text_key = next(
        (name for name in ("message", "prompt") if isinstance(fields.get(name), str)), ""
    )
    rest = {name: value for name, value in fields.items() if name != text_key}
    lines = [fields[text_key]] if text_key else []
    return "\n".join([*lines, *([json.dumps(rest)] if rest else [])])


def _unjudged(judged: set[str], changes: Json) -> str:
    for change in changes if isinstance(changes, list) else [None]:
        if not isinstance(change, dict) or not isinstance(change.get("path"), str):
            return "it does not say what it changes"
        kind = change.get("kind")
        moved = kind.get("move_path") if isinstance(kind, dict) else None
        for path in (change["path"], moved):
            if path is not None and _real(str(path)) not in judged:
                return f"it changes {path!r}, which the checked patch does not"
    return ""


def _same(one: str, other: str) -> bool:
    return _real(one) == _real(other)


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL: no path of this machine, and so none that was judged
        return path


TOOLBOX = f"mcp__{SERVER}__"
"""Prefix that it puts before the names of the server's tools."""
MAX_CATALOGUE_BYTES = 16_000_000

_OFF = ("shell_tool", "unified_exec", "view_image", "multi_agent", "multi_agent_v2")
_MODELS_OFF: dict[str, Json] = {
    "shell_type": "disabled",
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "node_repl_disabled": True,
    # With it the toolbox would not be offered: the model would have to search for it first.
    "supports_search_tool": False,
}
_MODELS_WITHOUT = ("tool_mode", "multi_agent_version")
"""Settings that make a model write programs that use the tools, or gives it others to work for it."""


@dataclass(frozen=True)
class McpOnlySetup:
    """Files and settings of an MCP-only codex."""

    server: Mapping[str, Json]
    """The command that starts the toolbox."""
    models: str
    """The catalogue of models, as JSON."""


class CodexTools(Judged):
    """Holds what codex does against the one thing it may: to use Podium's tools, which are judged there."""

    def difference(self, item: dict[str, Any]) -> str:
        if item.get("type") == "mcpToolCall" and item.get("server") == SERVER:
            return ""
        return "this agent has no tools of its own"


async def mcp_only_models(
    agent: str, launcher: Launcher, command: tuple[str, ...], cwd: str, env: Mapping[str, str]
) -> str:
    """The models codex knows, as JSON, with the tools that each would bring along taken away.

    Raises `NotPossibleNow` for a codex that does not tell.
    """
    limits = ProcessLimits(seconds=60.0, output_bytes=MAX_CATALOGUE_BYTES)
    asking = (*command, "debug", "models", "--bundled")
    ended = await launcher.run(ProcessSpec(argv=asking, cwd=cwd, env=dict(env), limits=limits))
    try:
        models = json.loads(ended.stdout)["models"]
        without = [_mcp_only_model(model) for model in models]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise NotPossibleNow(
            f"agent {agent!r} is set to `hands: false`, and this version of codex does not list its models; "
            "install the version that `podium doctor` names"
        ) from None
    return json.dumps({"models": without})


def _mcp_only_model(model: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in model.items() if name not in _MODELS_WITHOUT}
    return {**fields, **_MODELS_OFF}


def mcp_only_settings(
    settings: Mapping[str, Any], server: Mapping[str, Json], models: Path
) -> dict[str, Any]:
    """Its settings, with no tool of its own and the toolbox as the only server."""
    return {
        **settings,
        "web_search": "disabled",
        "model_catalog_json": str(models),
        "features": {**settings["features"], **dict.fromkeys(_OFF, False)},
        "tools": {
            "experimental_request_user_input": {"enabled": False},
            "update_plan": {"enabled": False},
        },
        "mcp_servers": {
            SERVER: {
                **server,
                "required": True,
                "default_tools_approval_mode": "approve",
                "startup_readiness": "catalog",
                "startup_timeout_sec": START_SECONDS,
                "tool_timeout_sec": CALL_SECONDS,
            }
        },
    }
