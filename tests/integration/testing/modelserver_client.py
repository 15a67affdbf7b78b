"""The model providers' protocols from the client's side, for tests of the server."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.testing.modelserver import ModelServer

PROTOCOLS = ("gemini", "responses", "chat", "anthropic")

SHELL = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}


@dataclass
class HttpResponse:
    """Response of the model server."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True
    """Whether it ended as HTTP says it should."""
    events: list[Any] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Mapping[str, Any]:
        error: Mapping[str, Any] = self.json["error"]
        return error


async def send(
    server: ModelServer,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> HttpResponse:
    """One request on a line of its own. Raises what `http.client` raises when the line is cut."""
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()

    def work() -> HttpResponse:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        try:
            line.request(method, path, raw, dict(headers or {}))
            answer = line.getresponse()
            lowered = {name.lower(): value for name, value in answer.getheaders()}
            try:
                return HttpResponse(answer.status, lowered, answer.read())
            except http.client.IncompleteRead as cut:
                return HttpResponse(answer.status, lowered, cut.partial, whole=False)
        finally:
            line.close()

    result = await asyncio.to_thread(work)
    if result.headers.get("content-type", "").startswith("text/event-stream"):
        result.events = list(_events(result.body))
    return result


async def ask(
    server: ModelServer,
    protocol: str,
    prompt: str,
    *,
    stream: bool = False,
    results: int = 0,
    tools: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    model: str = "m-1",
) -> HttpResponse:
    """Ask the model something, after so many tool results."""
    path, body = question(
        protocol, prompt, stream=stream, results=results, tools=tools, model=model
    )
    return await send(server, path, body, headers=headers)


def question(
    protocol: str,
    prompt: str,
    *,
    stream: bool = False,
    results: int = 0,
    tools: Sequence[str] = (),
    model: str = "m-1",
) -> tuple[str, dict[str, Any]]:
    """Path and body."""
    made: dict[str, tuple[str, dict[str, Any]]] = {
        "gemini": (_gemini_path(model, stream), _gemini(prompt, results, tools)),
        "responses": ("/v1/responses", _responses(prompt, results, tools)),
        "chat": ("/v1/chat/completions", _chat(prompt, results, tools)),
        "anthropic": ("/v1/messages", _anthropic(prompt, results, tools)),
    }
    path, body = made[protocol]
    if protocol == "gemini":
        return path, body
    return path, {"model": model, "stream": stream, **body}


def _gemini_path(model: str, stream: bool) -> str:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{verb}"


def _gemini(prompt: str, results: int, tools: Sequence[str]) -> dict[str, Any]:
    contents: list[Any] = [{"role": "user", "parts": [{"text": prompt}]}]
    for _ in range(results):
        call = {"functionCall": {"name": "t", "args": {}}}
        response = {"functionResponse": {"name": "t", "response": {"output": "x"}}}
        contents += [
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [response]},
        ]
    declared = [{"name": name, "parametersJsonSchema": SHELL} for name in tools]
    return {"contents": contents, "tools": [{"functionDeclarations": declared}]}


def _responses(prompt: str, results: int, tools: Sequence[str]) -> dict[str, Any]:
    given: list[Any] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    ]
    for number in range(results):
        call = {"call_id": f"c{number}", "name": "t", "arguments": "{}"}
        given += [
            {"type": "function_call", **call},
            {"type": "function_call_output", "call_id": f"c{number}", "output": "x"},
        ]
    offered = [{"type": "function", "name": name, "parameters": SHELL} for name in tools]
    return {"input": given, "tools": offered}


def _chat(prompt: str, results: int, tools: Sequence[str]) -> dict[str, Any]:
    messages: list[Any] = [{"role": "system", "content": "s"}, {"role": "user", "content": prompt}]
    for number in range(results):
        messages += [
            {"role": "assistant", "tool_calls": [{"id": f"c{number}"}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x"},
        ]
    offered = [
        {"type": "function", "function": {"name": name, "parameters": SHELL}} for name in tools
    ]
    return {
        "messages": messages,
        "tools": offered,
        "stream_options": {"include_usage": True},
    }


def _anthropic(prompt: str, results: int, tools: Sequence[str]) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": prompt}]
    for number in range(results):
        use = {"type": "tool_use", "id": f"t{number}", "name": "t", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x"}
        messages += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    offered = [{"name": name, "input_schema": SHELL} for name in tools]
    return {"max_tokens": 100, "messages": messages, "tools": offered}


def _events(body: bytes) -> list[Any]:
    events = []
    for block in body.replace(b"\r\n", b"\n").split(b"\n\n"):
        for line in block.split(b"\n"):
            if line.startswith(b"data: {"):
                try:
                    events.append(json.loads(line[6:].decode(errors="replace")))
                except ValueError:
                    events.append(None)
    return events


def text_of(protocol: str, output: HttpResponse) -> str:
    """Return the text that the model said, from a body or a stream."""
    if output.events:
        return "".join(_piece(protocol, event) for event in output.events if event)
    response = output.json
    match protocol:
        case "gemini":
            parts = response["candidates"][0]["content"]["parts"]
            spoken = [part for part in parts if "text" in part and not part.get("thought")]
            return "".join(part["text"] for part in spoken)
        case "responses":
            messages = [item for item in response["output"] if item["type"] == "message"]
            return "".join(part["text"] for item in messages for part in item["content"])
        case "chat":
            return response["choices"][0]["message"]["content"] or ""
    return "".join(block["text"] for block in response["content"] if block["type"] == "text")


def _piece(protocol: str, event: Mapping[str, Any]) -> str:
    match protocol:
        case "gemini":
            candidates = event.get("candidates") or [{}]
            parts = candidates[0].get("content", {}).get("parts", [])
            return "".join(part.get("text", "") for part in parts if not part.get("thought"))
        case "responses":
            return event["delta"] if event["type"] == "response.output_text.delta" else ""
        case "chat":
            choices = event.get("choices")
            return (choices[0]["delta"].get("content") or "") if choices else ""
    delta = event.get("delta", {})
    return delta.get("text", "") if delta.get("type") == "text_delta" else ""


def calls_of(protocol: str, messages: HttpResponse) -> list[tuple[str, Any]]:
    """Names and arguments of the tools the model called."""
    match protocol:
        case "gemini":
            answers = messages.events or [messages.json]
            parts = [
                part for answer in answers for part in answer["candidates"][0]["content"]["parts"]
            ]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            return [(call["name"], call["args"]) for call in calls]
        case "responses":
            output = (messages.events[-1]["response"] if messages.events else messages.json)[
                "output"
            ]
            return [
                (item["name"], item.get("input") or json.loads(item["arguments"]))
                for item in output
                if item["type"].endswith("_call")
            ]
        case "chat":
            entries = [
                entry["choices"][0]
                for entry in messages.events or [messages.json]
                if entry["choices"]
            ]
            found = [one for entry in entries for one in _chat_calls(entry)]
            return [(one["name"], json.loads(one["arguments"])) for one in found]
    if messages.events:
        return _anthropic_calls(messages.events)
    uses = [block for block in messages.json["content"] if block["type"] == "tool_use"]
    return [(use["name"], use["input"]) for use in uses]


def _chat_calls(choice: Mapping[str, Any]) -> list[Any]:
    output = choice.get("message") or choice.get("delta") or {}
    return [call["function"] for call in output.get("tool_calls", [])]


def _anthropic_calls(events: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    names = [
        event["content_block"]["name"]
        for event in events
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use"
    ]
    given = [
        json.loads(event["delta"]["partial_json"])
        for event in events
        if event.get("delta", {}).get("type") == "input_json_delta"
    ]
    return list(zip(names, given, strict=True))
