"""An answer written by hand: what it says, or what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.testing.modelserver.answer import Answer, Call, Tokens, Words
from podium.testing.modelserver.ask import Ask, OfferedTool

EXAMPLE = (
    '{"text": "I look first.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]}'
)

_KEYS = ("text", "calls")
_CALL_KEYS = ("name", "arguments", "namespace")


class BadAnswer(Exception):
    """The answer cannot be sent. The message says what is wrong with it."""


def answer_from_text(raw: bytes, ask: Ask) -> Answer:
    """Plain text as the model's words, without the line break at its end. Raises `BadAnswer`."""
    text = _decoded(raw).removesuffix("\n")
    if not text.strip():
        raise BadAnswer("it is empty; write what the model says")
    return _answer(text, (), ask)


def answer_from_json(raw: bytes, ask: Ask) -> Answer:
    """An object with `text`, `calls` or both. Raises `BadAnswer`."""
    try:
        given = json.loads(_decoded(raw))
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"it is not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise BadAnswer("it must be a JSON object")
    _no_other_keys("the answer", given, _KEYS)
    text, calls = given.get("text", ""), given.get("calls", [])
    if not isinstance(text, str):
        raise BadAnswer('"text" must be a string')
    if not isinstance(calls, list):
        raise BadAnswer('"calls" must be a list')
    if not text.strip() and not calls:
        raise BadAnswer('it says nothing; give "text", "calls" or both')
    named = tuple(_call(f"calls[{at}]", call, ask.tools) for at, call in enumerate(calls))
    return _answer(text, named, ask)


def _call(place: str, given: Any, offered: Sequence[OfferedTool]) -> Call:
    if not isinstance(given, dict):
        raise BadAnswer(f'{place} must be an object with "name" and "arguments"')
    _no_other_keys(place, given, _CALL_KEYS)
    name, arguments = given.get("name"), given.get("arguments", {})
    tool = _tool(place, name, given.get("namespace"), offered)
    if not isinstance(arguments, dict):
        raise BadAnswer(f"{place}.arguments must be an object")
    if not tool.custom:
        return Call(tool.name, arguments, namespace=tool.namespace)
    if list(arguments) != ["input"] or not isinstance(arguments["input"], str):
        raise BadAnswer(f'{place}: {tool.name!r} takes plain text: "arguments": {{"input": "…"}}')
    return Call(tool.name, input=arguments["input"], namespace=tool.namespace)


def _tool(place: str, name: Any, namespace: Any, offered: Sequence[OfferedTool]) -> OfferedTool:
    fitting = [
        tool for tool in offered if tool.name == name and namespace in (None, tool.namespace)
    ]
    if not fitting:
        names = ", ".join(tool.name for tool in offered) or "none"
        raise BadAnswer(f"{place}: the request offers no tool {name!r}; offered: {names}")
    spaces = {tool.namespace for tool in fitting}
    if len(spaces) > 1:
        shown = ", ".join(sorted(map(repr, spaces)))
        raise BadAnswer(
            f'{place}: several tools are called {name!r}; add "namespace": one of {shown}'
        )
    return fitting[0]


def _no_other_keys(place: str, given: dict[str, Any], known: Sequence[str]) -> None:
    other = next((key for key in given if key not in known), None)
    if other is not None:
        raise BadAnswer(f"{place} has the unknown key {other!r}; keys: {', '.join(known)}")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadAnswer(f"it is not valid UTF-8 (byte {error.start + 1})") from None


def _answer(text: str, calls: tuple[Call, ...], ask: Ask) -> Answer:
    output = len(text) + sum(len(call.arguments_json) for call in calls)
    tokens = Tokens(input=ask.input_characters // 4, output=max(1, output // 4))
    return Answer(Words(text), tokens, calls=calls)
