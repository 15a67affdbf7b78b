"""The providers' own libraries, against the model server: plain, streamed, with tools, and failing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.testing.modelserver import ModelServer, Script

SCRIPT = Script.by_marker(
    {
        "talk": [
            {"thinking": "hm", "text": "Good day to you.", "usage": {"input": 9, "output": 4}}
        ],
        "look": [{"text": "Looking.", "tools": [{"name": "look", "arguments": {"at": "it"}}]}],
        "wait": [{"status": 429, "retry_after": 3, "message": "slow down"}],
        "fail": [{"fault": "error_event", "message": "broke inside"}],
        "cut": [{"text": "one two three four", "fault": "drop"}],
    }
)
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}}


# They take seconds to import, and every worker of the suite collects this file.
@pytest.fixture(scope="module")
def openai() -> Any:
    return pytest.importorskip("openai")


@pytest.fixture(scope="module")
def anthropic() -> Any:
    return pytest.importorskip("anthropic")


@pytest.fixture(scope="module")
def genai() -> Any:
    return pytest.importorskip("google.genai")


@pytest.mark.soak
async def test_openais_chat(openai: Any) -> None:
    async with (
        ModelServer(SCRIPT) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client,
    ):
        talk = [{"role": "user", "content": "SCRIPT:talk"}]
        whole = await client.chat.completions.create(model="m", messages=talk)
        assert whole.choices[0].message.content == "Good day to you."
        assert whole.usage.total_tokens == 13
        stream = await client.chat.completions.create(
            model="m", messages=talk, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        messages = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert "".join(text or "" for text in messages) == "Good day to you."
        assert chunks[-1].usage.completion_tokens == 4
        tools = [{"type": "function", "function": {"name": "look", "parameters": LOOK}}]
        look = [{"role": "user", "content": "SCRIPT:look"}]
        called = await client.chat.completions.create(model="m", messages=look, tools=tools)
        assert called.choices[0].finish_reason == "tool_calls"
        (call,) = called.choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments) == ("look", '{"at": "it"}')


async def test_openais_responses(openai: Any) -> None:
    async with (
        ModelServer(SCRIPT) as server,
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client,
    ):
        shape = {"type": "json_schema", "name": "n", "schema": LOOK}
        whole = await client.responses.create(
            model="m", input="SCRIPT:talk", text={"format": shape}
        )
        assert whole.output_text == "Good day to you."
        assert [item.type for item in whole.output] == ["reasoning", "message"]
        async with client.responses.stream(model="m", input="SCRIPT:talk") as stream:
            final = await stream.get_final_response()
        assert (final.output_text, final.usage.output_tokens) == ("Good day to you.", 4)
        tools = [{"type": "function", "name": "look", "parameters": LOOK, "strict": False}]
        async with client.responses.stream(model="m", input="SCRIPT:look", tools=tools) as stream:
            called = await stream.get_final_response()
        assert called.output[-1].arguments == '{"at": "it"}'
        with pytest.raises(openai.RateLimitError) as limited:
            await client.responses.create(model="m", input="SCRIPT:wait")
        assert limited.value.response.headers["retry-after"] == "3"


async def test_anthropics_messages(anthropic: Any) -> None:
    async with (
        ModelServer(SCRIPT) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        talk = {"model": "m", "max_tokens": 99}
        messages = [{"role": "user", "content": "SCRIPT:talk"}]
        whole = await client.messages.create(messages=messages, **talk)
        assert [block.type for block in whole.content] == ["thinking", "text"]
        assert (whole.content[1].text, whole.usage.output_tokens) == ("Good day to you.", 4)
        async with client.messages.stream(messages=messages, **talk) as stream:
            assert "".join([text async for text in stream.text_stream]) == "Good day to you."
            assert (await stream.get_final_message()).stop_reason == "end_turn"
        look = [{"role": "user", "content": "SCRIPT:look"}]
        tools = [{"name": "look", "input_schema": LOOK}]
        async with client.messages.stream(messages=look, tools=tools, **talk) as stream:
            final = await stream.get_final_message()
        assert (final.stop_reason, final.content[-1].input) == ("tool_use", {"at": "it"})
        counted = await client.messages.count_tokens(model="m", messages=messages)
        assert counted.input_tokens > 0
        fail = [{"role": "user", "content": "SCRIPT:fail"}]
        with pytest.raises(anthropic.APIStatusError, match="broke inside"):
            async with client.messages.stream(messages=fail, **talk) as stream:
                await stream.get_final_message()
        wait = [{"role": "user", "content": "SCRIPT:wait"}]
        with pytest.raises(anthropic.RateLimitError, match="slow down"):
            await client.messages.create(messages=wait, **talk)


async def test_googles_library(genai: Any) -> None:
    async with ModelServer(SCRIPT) as server:
        client = genai.Client(api_key="k", http_options={"base_url": server.url})
        models = client.aio.models
        whole = await models.generate_content(model="m", contents="SCRIPT:talk")
        assert whole.text == "Good day to you."
        assert whole.usage_metadata.total_token_count == 13
        stream = await models.generate_content_stream(model="m", contents="SCRIPT:talk")
        chunks = [chunk async for chunk in stream]
        assert "".join(chunk.text or "" for chunk in chunks) == "Good day to you."
        declared = [{"name": "look", "parameters_json_schema": LOOK}]
        config = {
            "tools": [{"function_declarations": declared}],
            "automatic_function_calling": {"disable": True},
        }
        stream = await models.generate_content_stream(
            model="m", contents="SCRIPT:look", config=config
        )
        chunks = [chunk async for chunk in stream]
        calls = [call for chunk in chunks for call in chunk.function_calls or []]
        assert [(call.name, call.args) for call in calls] == [("look", {"at": "it"})]
        counted = await models.count_tokens(model="m", contents="SCRIPT:talk")
        assert counted.total_tokens > 0
        with pytest.raises(genai.errors.ClientError, match="slow down"):
            await models.generate_content(model="m", contents="SCRIPT:wait")
        await client.aio.aclose()
        await asyncio.to_thread(client.close)
