"""Connection to a provider: the data that may be sent over it, and the responses that may come back."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from podium.agents.api import providers as line_module
from podium.agents.api.providers import HttpLine
from podium.core.errors import AgentUnavailable
from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import (
    KEY,
    NOTE,
    OFFERED,
    PROVIDERS,
    ApiHarness,
    allowed,
    script,
)
from tests.soaking import in_soak

HOSTILE_ENVIRONMENT = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
    "SSL_CERT_FILE": "/nowhere.pem",
    "OPENAI_API_KEY": "sk-of-the-parent",
    "OPENAI_BASE_URL": "http://127.0.0.1:9",
    "OPENAI_ORG_ID": "org-of-the-parent",
    "OPENAI_PROJECT_ID": "project-of-the-parent",
    "OPENAI_CUSTOM_HEADERS": "X-Of-The-Parent: yes\nanthropic-beta: of-the-parent\nAccept: of-the-parent",
    "OPENROUTER_API_KEY": "sk-of-the-parent",
    "OPENROUTER_APP_URL": "https://of-the-parent.example",
    "ANTHROPIC_API_KEY": "sk-of-the-parent",
    "ANTHROPIC_AUTH_TOKEN": "sk-of-the-parent",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Of-The-Parent: yes\nanthropic-beta: of-the-parent\nAccept: of-the-parent",
    "GOOGLE_API_KEY": "sk-of-the-parent",
    "GEMINI_API_KEY": "sk-of-the-parent",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_API_VERSION": "of-the-parent",
    "GOOGLE_CLOUD_PROJECT": "project-of-the-parent",
    "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
    "GOOGLE_GENAI_CLIENT_MODE": "replay",
}


class RawServer:
    """Answers every request with prepared bytes, and keeps the requests as they came."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.seen: list[bytes] = []
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RawServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        self.seen.append(head + await reader.readexactly(length))
        writer.write(self._answers.pop(0))
        await writer.drain()
        writer.close()


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chat(*chunks: dict[str, Any]) -> bytes:
    """A stream of the chat protocol."""
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1"}
    lines = [f"data: {json.dumps({**base, 'choices': [chunk]})}\n\n" for chunk in chunks]
    body = "".join([*lines, "data: [DONE]\n\n"]).encode()
    return answer(body, "Content-Type: text/event-stream")


def chat_says(text: str) -> bytes:
    delta = {"role": "assistant", "content": text}
    return chat({"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": "stop"})


def chat_calls(arguments: str) -> bytes:
    function = {"name": OFFERED, "arguments": arguments}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    delta = {"role": "assistant", "tool_calls": calls}
    return chat(
        {"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    )


def raw_harness(folder: Path, raw: RawServer, **more: Any) -> ApiHarness:
    server = ModelServer()
    server.port = int(raw.url.rpartition(":")[2])
    return ApiHarness(folder, server, "openai", **more)


@pytest.mark.sample(2)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_nothing_of_the_parents_environment_is_used(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    async with ModelServer(script(x=["Hi."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        reply = await harness.agent.ask(harness.turn("SCRIPT:x"))
        assert reply.text == "Hi."
        headers = server.requests[0].headers
    assert not any("of-the-parent" in f"{name}{value}".lower() for name, value in headers.items())


async def test_no_header_says_more_than_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HOSTILE_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    async with RawServer(chat_says("Hi.")).open() as raw:
        harness = raw_harness(tmp_path, raw)
        assert (await harness.agent.ask(harness.turn("x"))).text == "Hi."
    head = raw.seen[0].partition(b"\r\n\r\n")[0].decode().lower()
    names = {line.partition(":")[0] for line in head.split("\r\n")[1:]}
    assert names == {
        "host",
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "user-agent",
    }
    assert f"bearer {KEY}" in head
    assert "accept-encoding: identity" in head


async def test_a_provider_cannot_send_the_key_elsewhere(tmp_path: Path) -> None:
    async with RawServer(chat_says("Stolen.")).open() as other:
        moved = answer(b"", f"Location: {other.url}/v1/chat/completions", status="307 Moved")
        async with RawServer(moved).open() as raw:
            harness = raw_harness(tmp_path, raw)
            with pytest.raises(AgentUnavailable):
                await harness.agent.ask(harness.turn("x"))
    assert other.seen == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:2/v1", "https://127.0.0.1:1/v1", "http://localhost:1/v1"]
)
async def test_the_line_goes_to_one_place_alone(url: str) -> None:
    sent: list[httpx2.Request] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, stream=httpx2.ByteStream(b"ok"))

    line = HttpLine(
        "http://127.0.0.1:1/v1", {"x-api-key": KEY}, 5, inner=httpx2.MockTransport(keep)
    )
    async with httpx2.AsyncClient(transport=line, trust_env=False) as client:
        with pytest.raises(httpx2.LocalProtocolError, match="not its base_url"):
            await client.post(url)
        assert sent == []
        response = await client.post("http://127.0.0.1:1/v1/other", headers={"x-more": "1"})
    assert sent[0].headers["x-api-key"] == KEY
    assert "x-more" not in sent[0].headers
    assert KEY not in str(response.request.headers.raw)


async def test_a_packed_answer_is_not_unpacked(tmp_path: Path) -> None:
    packed = answer(b"\x1f\x8b\x08", "Content-Encoding: gzip", "Content-Type: text/event-stream")
    async with RawServer(packed).open() as raw:
        harness = raw_harness(tmp_path, raw)
        with pytest.raises(AgentUnavailable, match="compressed"):
            await harness.agent.ask(harness.turn("x"))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "arguments", ['{"text": "half', "[1, 2]", '"words"', '{"text": NaN}', "[" * 100_000]
)
async def test_malformed_arguments_go_back_to_the_model(tmp_path: Path, arguments: str) -> None:
    async with RawServer(chat_calls(arguments), chat_says("Sorry.")).open() as raw:
        harness = raw_harness(tmp_path, raw, tools=[NOTE], answers=[allowed()])
        reply = await harness.agent.ask(harness.turn("x"))
    assert reply.text == "Sorry."
    assert harness.doors.door.asked == []
    assert b"the arguments are not a JSON object" in raw.seen[1]


async def test_halves_of_characters_are_replaced_before_anything_is_kept(tmp_path: Path) -> None:
    half = "\ud83d"
    async with RawServer(chat_calls(f'{{"text": "{half}"}}'), chat_says(f"a{half}b")).open() as raw:
        harness = raw_harness(tmp_path, raw, answers=[allowed()], tools=[NOTE])
        reply = await harness.agent.ask(harness.turn("do it"))
    assert reply.text == "a?b"
    assert harness.doors.door.asked == [("perform", "keep.note", {"text": "?"})]
    assert [answer.kept is None for answer in harness.doors.door.remembered.values()] == [
        False,
        False,
    ]


async def test_no_arguments_are_an_empty_object(tmp_path: Path) -> None:
    async with RawServer(chat_calls(""), chat_says("Done.")).open() as raw:
        harness = raw_harness(tmp_path, raw, tools=[NOTE], answers=[allowed()])
        await harness.agent.ask(harness.turn("x"))
    assert harness.doors.door.asked == [("perform", "keep.note", {})]


async def test_a_stream_of_nonsense_is_an_outage(tmp_path: Path) -> None:
    for body in (b"", b"data: 1\n\n", b"data: []\n\n", b'data: {"choices": 7}\n\n', b"\xff" * 99):
        async with RawServer(answer(body, "Content-Type: text/event-stream")).open() as raw:
            harness = raw_harness(tmp_path, raw)
            with pytest.raises(AgentUnavailable):
                await harness.agent.ask(harness.turn("x"))


MEGABYTE = 1_000_000


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("provider", "size"),
    [("anthropic", 5 * MEGABYTE), ("google", 5 * MEGABYTE)]
    + [in_soak(provider, 50 * MEGABYTE) for provider in PROVIDERS],
)
async def test_fifty_megabytes_come_whole_and_memory_stays_bounded(
    provider: str, size: int, tmp_path: Path
) -> None:
    step = {"flood_bytes": size, "then": "THE END"}
    async with ModelServer(script(x=[step]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        harness.doors.door.report_progress = lambda kind, text: None  # type: ignore[method-assign]
        before = _peak_bytes()
        reply = await harness.agent.ask(harness.turn("SCRIPT:x"))
        grown = _peak_bytes() - before
    assert len(reply.text) == size + len("THE END")
    assert reply.text.endswith("THE END")
    assert grown < 12 * size


async def test_an_answer_without_end_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "MAX_ANSWER_BYTES", 1_000_000)  # what it is takes a while
    async with ModelServer(script(x=[{"flood_bytes": 2_000_000}]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "anthropic")
        with pytest.raises(AgentUnavailable, match="larger than 1,000,000 bytes"):
            await harness.agent.ask(harness.turn("SCRIPT:x"))


def _peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
