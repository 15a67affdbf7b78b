"""Every protocol of the model server: answers whole and streamed, calls, usage, ends, lists."""

from __future__ import annotations

from typing import Any

import pytest

from podium.testing.modelserver import ModelServer, Script
from tests.integration.testing.modelserver_client import (
    PROTOCOLS,
    HttpResponse,
    ask,
    calls_of,
    question,
    send,
    text_of,
)

LONG = "Grüße — “a”\n\\ and {json} \x07, " * 20


def plays(*steps: Any) -> ModelServer:
    return ModelServer({"default": {"steps": list(steps)}})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_text_arrives_exactly(protocol: str, stream: bool) -> None:
    async with plays({"text": LONG}) as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.status == 200
    assert response.whole
    assert text_of(protocol, response) == LONG
    assert bool(response.events) == stream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_calls_arrive_with_their_arguments(protocol: str, stream: bool) -> None:
    tools = [{"name": "f", "arguments": {"a": [1, "ü"]}}, {"name": "g"}]
    async with plays({"text": "Now.", "tools": tools}) as server:
        response = await ask(server, protocol, "hi", stream=stream, tools=["f", "g"])
    assert calls_of(protocol, response) == [("f", {"a": [1, "ü"]}), ("g", {})]
    assert text_of(protocol, response) == "Now."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_thinking_is_distinguished_from_the_text(protocol: str, stream: bool) -> None:
    async with plays({"thinking": "let me see", "text": "yes"}) as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert b"let me see" in response.body
    assert text_of(protocol, response) == "yes"


USAGE = {
    "gemini": {
        "promptTokenCount": 100,
        "candidatesTokenCount": 7,
        "totalTokenCount": 107,
        "cachedContentTokenCount": 40,
    },
    "responses": {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107},
    "chat": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107},
    "anthropic": {"output_tokens": 7},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_usage_is_what_the_script_says(protocol: str, stream: bool) -> None:
    async with plays({"text": "x", "usage": {"input": 100, "output": 7, "cached": 40}}) as server:
        response = await ask(server, protocol, "hi", stream=stream)
    usage = _usage(protocol, response)
    assert {name: usage[name] for name in USAGE[protocol]} == USAGE[protocol]
    if protocol == "anthropic":
        begun = response.events[0]["message"]["usage"] if stream else usage
        assert (begun["input_tokens"], begun["cache_read_input_tokens"]) == (60, 40)
    if protocol == "responses":
        assert usage["input_tokens_details"]["cached_tokens"] == 40
    if protocol == "chat":
        assert usage["prompt_tokens_details"]["cached_tokens"] == 40


def _usage(protocol: str, output: HttpResponse) -> Any:
    events = [event for event in output.events if event] or [output.json]
    if protocol == "gemini":
        return events[-1]["usageMetadata"]
    if protocol == "responses":
        return (events[-1].get("response") or events[-1])["usage"]
    return next(event["usage"] for event in reversed(events) if event.get("usage"))


ENDS = [
    ("gemini", "length", '"finishReason":"MAX_TOKENS"'),
    ("gemini", "safety", '"finishReason":"SAFETY"'),
    ("gemini", "refusal", '"blockReason":"PROHIBITED_CONTENT"'),
    ("responses", "length", '"incomplete_details":{"reason":"max_output_tokens"}'),
    ("responses", "safety", '"incomplete_details":{"reason":"content_filter"}'),
    ("responses", "refusal", '"refusal":"no, '),
    ("chat", "length", '"finish_reason":"length"'),
    ("chat", "safety", '"finish_reason":"content_filter"'),
    ("chat", "refusal", '"refusal":"no, '),
    ("anthropic", "length", '"stop_reason":"max_tokens"'),
    ("anthropic", "safety", '"stop_reason":"refusal"'),
    ("anthropic", "refusal", '"stop_reason":"refusal"'),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("protocol", "finish", "words"), ENDS)
async def test_an_answer_ends_as_the_script_says(
    protocol: str, finish: str, words: str, stream: bool
) -> None:
    step = {"text": "no, I will not", "finish": finish, "chunk_characters": 4}
    async with plays(step) as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.status == 200
    assert words in response.body.decode()


async def test_a_stream_has_as_many_events_as_the_chunks_want() -> None:
    async with plays({"text": "abcdefghij", "chunk_characters": 3}) as server:
        response = await ask(server, "gemini", "hi", stream=True)
    assert [
        text_of("gemini", HttpResponse(200, {}, b"", events=[event])) for event in response.events
    ] == [
        "abc",
        "def",
        "ghi",
        "j",
    ]


async def test_the_events_of_responses_say_all_again_at_the_end() -> None:
    step = {"thinking": "hm", "text": "Now.", "tools": [{"name": "f", "arguments": {"a": 1}}]}
    async with plays(step) as server:
        response = await ask(server, "responses", "hi", stream=True, tools=["f"])
    kinds = [event["type"] for event in response.events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event["sequence_number"] for event in response.events] == list(range(len(kinds)))
    done = [
        event["item"] for event in response.events if event["type"].endswith("output_item.done")
    ]
    assert [item["type"] for item in done] == ["reasoning", "message", "function_call"]
    assert done == response.events[-1]["response"]["output"]
    assert response.events[0]["response"]["id"] == response.events[-1]["response"]["id"]


async def test_a_flood_of_responses_comes_in_messages_of_a_size_that_codex_can_read() -> None:
    async with plays({"flood_bytes": 2_500_000, "then": "END"}) as server:
        response = await ask(server, "responses", "hi", stream=True)
    done = [
        event["item"] for event in response.events if event["type"].endswith("output_item.done")
    ]
    texts = [item["content"][0]["text"] for item in done]
    assert [len(text) for text in texts] == [1_000_000, 1_000_000, 500_003]
    assert texts[-1].endswith("END")
    assert response.events[-1]["response"]["output"] == []


async def test_a_custom_tool_gets_plain_text_where_the_protocol_has_them() -> None:
    tools = [{"type": "custom", "name": "apply_patch"}]
    async with plays({"custom_tool": {"name": "apply_patch", "input": "*** Begin"}}) as server:
        path, body = question("responses", "hi", stream=True)
        response = await send(server, path, {**body, "tools": tools})
        assert calls_of("responses", response) == [("apply_patch", "*** Begin")]
        other = await ask(server, "anthropic", "hi", tools=["apply_patch"])
        assert calls_of("anthropic", other) == [("apply_patch", {"input": "*** Begin"})]


async def test_a_chat_stream_gives_usage_only_when_asked_and_ends_with_done() -> None:
    async with plays("hi") as server:
        path, body = question("chat", "hi", stream=True)
        asked = await send(server, path, body)
        plain = await send(server, path, {**body, "stream_options": None})
    assert asked.body.endswith(b"data: [DONE]\n\n")
    assert asked.events[-1]["usage"]["total_tokens"] > 0
    assert asked.events[-1]["choices"] == []
    assert not any(event.get("usage") for event in plain.events)


async def test_a_gemini_stream_without_events_is_a_json_list() -> None:
    async with plays("hi there") as server:
        path = "/v1beta/models/m:streamGenerateContent"
        response = await send(server, path, question("gemini", "hi")[1])
    (chunk,) = response.json
    assert chunk["candidates"][0]["content"]["parts"] == [{"text": "hi there"}]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/some/proxy/v1/chat/completions",
        "/v1/chat/completions/",
    ],
)
async def test_a_path_may_have_a_prefix_or_none(path: str) -> None:
    async with plays("hi") as server:
        assert text_of("chat", await send(server, path, question("chat", "hi")[1])) == "hi"


async def test_text_behind_a_question_mark_does_not_matter() -> None:
    async with plays("hi") as server:
        response = await send(server, "/v1/messages?beta=true", question("anthropic", "hi")[1])
        assert text_of("anthropic", response) == "hi"
        vertex = "/v1/projects/p/locations/l/publishers/google/models/m:generateContent"
        assert text_of("gemini", await send(server, vertex, question("gemini", "hi")[1])) == "hi"


async def test_tokens_are_counted_and_models_listed() -> None:
    async with ModelServer(Script(), models=["one", "two"]) as server:
        gemini = await send(server, "/v1beta/models/one:countTokens", {"contents": []})
        claude = await send(server, "/v1/messages/count_tokens", {"messages": [], "model": "m"})
        listed = [
            await send(server, "/v1beta/models", method="GET"),
            await send(server, "/v1/models", method="GET"),
            await send(
                server, "/v1/models", method="GET", headers={"anthropic-version": "2023-06-01"}
            ),
        ]
    assert gemini.json["totalTokens"] > 0
    assert claude.json["input_tokens"] > 0
    assert [model["name"] for model in listed[0].json["models"]] == ["models/one", "models/two"]
    assert [model["id"] for model in listed[1].json["data"]] == ["one", "two"]
    assert (listed[2].json["has_more"], listed[2].json["last_id"]) == (False, "two")


async def test_a_look_whether_the_server_is_there_is_answered() -> None:
    async with plays("hi") as server:
        response = await send(server, "/v1/messages", method="HEAD")
        assert (response.status, response.body) == (200, b"")
        assert (await send(server, "/", method="GET")).status == 200


async def test_unknown_path_is_reported_with_the_known_ones() -> None:
    async with plays("hi") as server:
        response = await send(server, "/v2/nothing", {})
        assert response.status == 404
        assert "/v1/chat/completions" in response.error["message"]
        embedding = await send(server, "/v1beta/models/m:embedContent", {})
        assert (embedding.status, embedding.error["status"]) == (404, "NOT_FOUND")
        assert (await send(server, "/v1/messages", method="GET")).status == 404


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"{}", b"[" * 100_000, b"\xff"])
async def test_a_body_no_provider_would_take_is_refused_in_its_words(
    protocol: str, body: bytes
) -> None:
    async with plays("hi") as server:
        response = await send(server, question(protocol, "")[0], body)
    assert response.status == 400
    assert response.error["message"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_odd_shapes_inside_a_body_break_nothing(protocol: str) -> None:
    odd: dict[str, Any] = {
        "model": "m",
        "max_tokens": 5,
        "tools": [None, 3, {"functionDeclarations": 5}, {"function": []}, {"type": "namespace"}],
        "messages": [{"role": 5, "content": {"a": 1}}, {"role": "user", "content": [3, {}]}],
        "input": [{"type": []}, {"role": "user", "content": [{"text": 5}]}],
        "contents": [{"parts": "x"}, {"role": "user", "parts": [{"text": None}]}],
    }
    async with plays("hi") as server:
        response = await send(server, question(protocol, "")[0], odd)
    assert (response.status, text_of(protocol, response)) == (200, "hi")
