"""Picks the tool that runs a command, writes or reads a file out of those a request offers.

Every program names them in its own way; a script that says `run:` drives them all.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from podium.testing.modelserver.answer import Call
from podium.testing.modelserver.ask import OfferedTool, table
from podium.testing.modelserver.script import FileWrite, Step

SHELLS = (
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "Bash",
    "bash",
    "run_command",
)
WRITERS = ("write_file", "Write", "write", "apply_patch")
ANSWERERS = ("StructuredOutput", "structured_output")
"""Claude Code takes an answer that follows a schema by a tool of its own."""
READERS = ("read_file", "Read", "read")
COMMAND_KEYS = ("command", "cmd", "script")
PATH_KEYS = ("file_path", "filePath", "path", "absolute_path", "filename")


def words_of(step: Step, offered: Sequence[OfferedTool]) -> str:
    """The text of a step, with its payload where no tool takes that."""
    if step.payload is None or _find(ANSWERERS, offered) is not None:
        return step.text
    payload = json.dumps(step.payload, ensure_ascii=False)
    return f"{step.text}\n{payload}" if step.text else payload


class NotOffered(Exception):
    """The request offers no tool for what the step wants. The message is for the transcript."""


def calls_of(step: Step, offered: Sequence[OfferedTool]) -> list[Call]:
    """The calls of a step. Raises `NotOffered`."""
    calls = [_named(call.name, call.arguments, offered) for call in step.tools]
    if step.custom_tool is not None:
        found = _find((step.custom_tool.name,), offered)
        space = found.namespace if found else ""
        calls.append(Call(step.custom_tool.name, input=step.custom_tool.input, namespace=space))
    if step.run is not None:
        calls.append(_run(step.run, offered))
    if step.write is not None:
        calls.append(_write(step.write, offered))
    if step.read is not None:
        calls.append(_read(step.read, offered))
    if step.payload is not None and (tool := _find(ANSWERERS, offered)) is not None:
        known = _properties(tool)
        calls.append(
            _call(tool, {key: value for key, value in step.payload.items() if key in known})
        )
    if calls and not offered:
        raise NotOffered("this request offers no tools at all")
    return calls


def _named(name: str, arguments: Mapping[str, Any], offered: Sequence[OfferedTool]) -> Call:
    """A call by its own name, offered or not: what a model makes up is a test too."""
    found = next((tool for tool in offered if tool.name == name), None)
    return Call(name, arguments, namespace=found.namespace if found else "")


def _run(command: str, offered: Sequence[OfferedTool]) -> Call:
    if _find(SHELLS, offered) is None and (composer := _composer(offered)):
        return _composed(composer, "exec_command", {"cmd": command})
    tool = _wanted("runs a shell command", SHELLS, offered)
    key = _key(tool, COMMAND_KEYS)
    takes_list = table(_properties(tool).get(key)).get("type") == "array"
    given: Any = ["bash", "-lc", command] if takes_list else command
    return _call(tool, {key: given})


def _write(file: FileWrite, offered: Sequence[OfferedTool]) -> Call:
    if _find(WRITERS, offered) is None and (composer := _composer(offered)):
        return _composed(composer, "apply_patch", _added_file(file))
    tool = _wanted("writes a file", WRITERS, offered)
    if tool.name != "apply_patch":
        return _call(tool, {_key(tool, PATH_KEYS): file.path, "content": file.content})
    patch = _added_file(file)
    if tool.custom:
        return Call(tool.name, input=patch, namespace=tool.namespace)
    return _call(tool, {_key(tool, ("input", "patch")): patch})


def _read(path: str, offered: Sequence[OfferedTool]) -> Call:
    reader = _find(READERS, offered)
    if reader is None and (_find(SHELLS, offered) or _composer(offered)):
        # codex has no tool for this and reads through its shell.
        return _run(f"cat -- {shlex.quote(path)}", offered)
    tool = reader or _wanted("reads a file", READERS, offered)
    return _call(tool, {_key(tool, PATH_KEYS): path})


def _composer(offered: Sequence[OfferedTool]) -> OfferedTool | None:
    """What codex offers to its newer models: one tool that runs JavaScript, which calls the others."""
    return next((tool for tool in offered if tool.custom and tool.name == "exec"), None)


def _composed(composer: OfferedTool, inner: str, given: Any) -> Call:
    code = f"text(await tools.{inner}({json.dumps(given)}));"
    return Call(composer.name, input=code, namespace=composer.namespace)


def _added_file(file: FileWrite) -> str:
    lines = "".join(f"+{line}\n" for line in file.content.splitlines())
    return f"*** Begin Patch\n*** Add File: {file.path}\n{lines}*** End Patch\n"


def _wanted(what: str, names: Sequence[str], offered: Sequence[OfferedTool]) -> OfferedTool:
    found = _find(names, offered)
    if found is None:
        there = ", ".join(tool.name for tool in offered) or "none"
        raise NotOffered(f"this request offers no tool that {what}; offered: {there}")
    return found


def _find(names: Sequence[str], offered: Sequence[OfferedTool]) -> OfferedTool | None:
    """By its own name, else as the tail that programs give to tools of MCP servers."""
    exact = {tool.name: tool for tool in reversed(offered)}
    for name in names:
        if name in exact:
            return exact[name]
    for name in names:
        for tool in offered:
            if tool.name.endswith(f"_{name}"):
                return tool
    return None


def _properties(tool: OfferedTool) -> Mapping[str, Any]:
    return table(tool.schema.get("properties"))


def _key(tool: OfferedTool, keys: Sequence[str]) -> str:
    """The name this tool has for an argument."""
    return next((key for key in keys if key in _properties(tool)), keys[0])


def _call(tool: OfferedTool, arguments: dict[str, Any]) -> Call:
    """The call, with words for what else the tool insists on, such as a description."""
    required = tool.schema.get("required")
    for key in required if isinstance(required, list) else []:
        if isinstance(key, str) and key not in arguments:
            kind = str(table(_properties(tool).get(key)).get("type", "string")).lower()
            arguments[key] = _FILLERS.get(kind, "as the script says")
    return Call(tool.name, arguments, namespace=tool.namespace)


_FILLERS: dict[str, Any] = {
    "boolean": False,
    "integer": 1,
    "number": 1,
    "array": [],
    "object": {},
}
