"""The turn's door in the words of the Model Context Protocol: its tools, and what becomes of a call."""

from __future__ import annotations

import sys

from podium.core import tool_replies
from podium.sandbox.hook_client import HookDenied, ask_door

MAX_NAME = 48
"""CLIs put `mcp__podium__` before it, and providers take 64 characters in all."""
MAX_RESULT_CHARACTERS = 40_000
"""More than the toolbox hands out, and less than what makes a CLI put it into a file instead."""

ADDED_BY_CLIS = ("wait_for_previous",)
"""Gemini CLI offers this with every tool, heeds it, and hands it on to a server that never asked for it."""


FINISH = "finish"
FINISHED = "you have said that you are done, and nothing more is performed; end your turn"


class DoorUnreachable(Exception):
    """The door did not answer, or with nonsense. The text says so."""


def mcp_server_command() -> tuple[str, ...]:
    """The command by which a CLI starts its only MCP server. It needs the variables of `TurnDoor.env`."""
    start = f"{__file__.rpartition('/')[0]}/isolated.py"
    return (sys.executable, "-IS", start, "podium.sandbox.mcp_server")


class McpToolbox:
    """The tools of this turn, under names that every CLI and provider takes."""

    def __init__(self) -> None:
        self._specs: dict[str, dict[str, object]] = {}
        self._is_finished = False

    def listed(self) -> list[dict[str, object]]:
        """The tools as the protocol lists them. Raises `DoorUnreachable`."""
        answer = _asked({"op": "tools"})
        tools = answer.get("tools")
        if answer.get("decision") != "allow" or not isinstance(tools, list):
            raise DoorUnreachable(
                f"Podium shows no tools: {answer.get('say') or tool_replies.NO_REASON}"
            )
        specs = {str(spec["name"]): spec for spec in tools if isinstance(spec, dict)}
        names = tool_replies.offered_names(specs, MAX_NAME)
        self._specs = {name: specs[real] for name, real in names.items()}
        return [_listed(name, spec) for name, spec in self._specs.items()]

    def performed(self, name: str, arguments: dict[str, object]) -> dict[str, object]:
        """Perform a call; the result is as the model is to see it."""
        if self._is_finished:
            return as_tool_result(tool_replies.refusal_text(FINISHED), ok=False)
        spec = self._specs.get(name, {})
        properties = _schema(spec).get("properties")
        own = properties if isinstance(properties, dict) else {}
        meant = {
            argument: value
            for argument, value in arguments.items()
            if argument in own or argument not in ADDED_BY_CLIS
        }
        # A name that was not offered stays, for the door to refuse.
        tool = str(spec.get("name") or name)
        result = _performed(tool, meant)
        self._is_finished = tool == FINISH and not result["isError"]
        return result


def _listed(name: str, spec: dict[str, object]) -> dict[str, object]:
    return {
        "name": name,
        "description": str(spec.get("description") or spec["name"]),
        "inputSchema": {"properties": {}, **_schema(spec), "type": "object"},
    }


def _schema(spec: dict[str, object]) -> dict[str, object]:
    schema = spec.get("input_schema")
    return schema if isinstance(schema, dict) else {}


def _performed(tool: str, arguments: dict[str, object]) -> dict[str, object]:
    try:
        answer = _asked({"op": "perform", "tool": tool, "arguments": arguments})
    except DoorUnreachable as error:
        return failed(f"{error}. Whether it was done is not known; end your turn and say so")
    outcome, say = answer.get("outcome"), str(answer.get("say") or "")
    if answer.get("decision") != "allow" or not isinstance(outcome, dict):
        waits = answer.get("decision") == "ask"
        text = tool_replies.refusal_text(say, mistake=bool(answer.get("mistake")), waits=waits)
        return as_tool_result(text, ok=False)
    ok, error_text = bool(outcome.get("ok")), str(outcome.get("error") or "")
    text = tool_replies.outcome_text(
        tool, ok, outcome.get("result"), error_text, MAX_RESULT_CHARACTERS
    )
    return as_tool_result(text, ok=ok)


def failed(message: str) -> dict[str, object]:
    return as_tool_result(tool_replies.failure_text(message), ok=False)


def as_tool_result(text: str, *, ok: bool) -> dict[str, object]:
    """Words as the result of a call. Where it failed, the model is told so beside them."""
    text = tool_replies.cut_to(MAX_RESULT_CHARACTERS, text)
    return {"content": [{"type": "text", "text": text}], "isError": not ok}


def _asked(message: dict[str, object]) -> dict[str, object]:
    try:
        return ask_door(message)
    except HookDenied as error:
        # What a hook is told: there it means no. Here something may have been done already.
        raise DoorUnreachable(str(error).removesuffix("; denied")) from None
    except (ValueError, RecursionError) as error:
        raise DoorUnreachable(f"Podium's answer cannot be read ({type(error).__name__})") from None
