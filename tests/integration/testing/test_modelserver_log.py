"""Requests that the model server remembers, and the key that it accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict

import pytest

from podium.core.errors import TimedOut
from podium.testing.modelserver import LoggedRequest, ModelServer
from podium.testing.modelserver.request_log import KEEP_REQUESTS
from tests.integration.testing.modelserver_client import PROTOCOLS, ask, question, send

SCRIPT = {"default": {"steps": ["hi"]}}
KEY = "sk-very-secret-1234"

CARRIED: list[tuple[str, Mapping[str, str]]] = [
    ("", {"Authorization": f"Bearer {KEY}"}),
    ("", {"x-api-key": KEY}),
    ("", {"x-goog-api-key": KEY}),
    (f"?key={KEY}&alt=sse", {}),
]


@pytest.mark.parametrize(("query", "headers"), CARRIED)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_key_is_accepted_however_it_comes_and_kept_nowhere(
    protocol: str, query: str, headers: Mapping[str, str]
) -> None:
    path, body = question(protocol, "hello")
    async with ModelServer(SCRIPT, key=KEY) as server:
        response = await send(
            server,
            path + query,
            body,
            headers={**headers, "Cookie": f"a={KEY}", "OpenAI-Organization": KEY},
        )
        assert response.status == 200
        (seen,) = server.requests
        assert seen.has_key
        assert KEY not in str(asdict(seen))
        assert seen.path == path + ("?alt=sse" if query else "")


WRONG = {"gemini": "UNAUTHENTICATED", "anthropic": "authentication_error"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("given", ["", "sk-other"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_another_key_or_none_is_refused_in_the_protocols_words(
    protocol: str, given: str, stream: bool
) -> None:
    headers = {"x-api-key": given} if given else {}
    async with ModelServer(SCRIPT, key=KEY) as server:
        response = await ask(server, protocol, "hello", headers=headers, stream=stream)
        assert response.status == 401
        assert WRONG.get(protocol, "invalid_api_key") in response.body.decode()
        assert server.requests[0].has_key == bool(given)
        assert server.prompts() == []
        models = await send(server, "/v1/models", method="GET", headers=headers)
        assert models.status == 401


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_request_is_remembered_with_what_it_asked(protocol: str) -> None:
    async with ModelServer(SCRIPT) as server:
        await ask(server, protocol, "What is it?", stream=True, tools=["look"])
        (seen,) = server.requests
        path, body = question(protocol, "What is it?", stream=True, tools=["look"])
        assert (seen.number, seen.method, seen.path, seen.body) == (1, "POST", path, body)
        assert (seen.protocol, seen.model, seen.streamed) == (protocol, "m-1", True)
        assert (seen.rule, seen.step, seen.status) == ("default", 0, 200)
        assert (seen.tools, seen.has_key) == (("look",), False)
        assert server.prompts() == ["What is it?"]


async def test_requests_are_waited_for() -> None:
    async with ModelServer(SCRIPT) as server:
        waiting = asyncio.create_task(server.wait_for_requests(2))
        await ask(server, "chat", "one")
        assert not waiting.done()
        await ask(server, "chat", "two")
        assert [seen.prompt for seen in await waiting] == ["one", "two"]
        with pytest.raises(TimedOut, match="2 of 3 requests came within"):
            await server.wait_for_requests(3, seconds=0.01)


async def test_only_the_newest_requests_are_kept() -> None:
    request = b"GET /%d HTTP/1.1\r\n\r\n"
    async with ModelServer(SCRIPT) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for number in range(KEEP_REQUESTS + 5):
            writer.write(request % number)
            await reader.readuntil(b"}}")
        writer.close()
        assert len(server.requests) == KEEP_REQUESTS
        assert server.request_count == KEEP_REQUESTS + 5
        assert server.requests[0].path == "/5"


async def test_big_bodies_push_out_older_ones() -> None:
    async with ModelServer(SCRIPT) as server:
        body = b'{"a": "' + b"x" * 30_000_000 + b'"}'
        for _ in range(3):
            await send(server, "/v1/messages", body)
        assert [seen.number for seen in server.requests] == [2, 3]


async def test_watcher_is_notified_once_a_request_is_answered() -> None:
    messages: list[LoggedRequest] = []
    async with ModelServer(SCRIPT, watcher=messages.append) as server:
        await ask(server, "chat", "one")
        await ask(server, "chat", "two")
    assert [(seen.prompt, seen.status) for seen in messages] == [("one", 200), ("two", 200)]
