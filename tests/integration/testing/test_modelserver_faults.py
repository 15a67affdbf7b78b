"""Every way in which the model server can be told to fail, in every protocol."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import pytest

from podium.testing.modelserver import ModelServer
from tests.integration.testing.modelserver_client import (
    PROTOCOLS,
    HttpResponse,
    ask,
    question,
    send,
    text_of,
)

BOTH = pytest.mark.parametrize("stream", [False, True])
EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
TEXT = "a text of some length that a stream tells in two events at the least"


def plays(**step: Any) -> ModelServer:
    return ModelServer({"default": {"steps": [{"text": TEXT, **step}]}})


KINDS = {
    "gemini": {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        529: "UNAVAILABLE",
    },
    "responses": {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error"},
    "chat": {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"},
    "anthropic": {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    },
}


@pytest.mark.sample(20)
@BOTH
@EVERY
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 529, 418])
async def test_a_status_comes_with_the_protocols_own_error(
    protocol: str, status: int, stream: bool
) -> None:
    async with plays(status=status) as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.status == status
    assert response.error["message"]
    kind = {"gemini": "status", "anthropic": "type"}.get(protocol, "code")
    if status in KINDS[protocol]:
        assert response.error[kind] == KINDS[protocol][status]
    if protocol == "gemini":
        assert response.error["code"] == status
    if protocol == "anthropic":
        assert response.json["type"] == "error"


@EVERY
async def test_a_rate_limit_says_when_to_come_again(protocol: str) -> None:
    async with plays(status=429, retry_after=7.5, message="slow down") as server:
        response = await ask(server, protocol, "hi", stream=True)
    assert response.headers["retry-after"] == "8"
    assert response.error["message"] == "slow down"
    if protocol == "gemini":
        (info,) = response.error["details"]
        assert (info["@type"].rpartition(".")[2], info["retryDelay"]) == ("RetryInfo", "7.5s")


@EVERY
async def test_more_headers_go_with_an_answer(protocol: str) -> None:
    async with plays(headers={"x-ratelimit-reset": "12"}) as server:
        assert (await ask(server, protocol, "hi")).headers["x-ratelimit-reset"] == "12"


OVERFLOW = {
    "gemini": "exceeds the maximum number of tokens allowed",
    "responses": "context_length_exceeded",
    "chat": "context_length_exceeded",
    "anthropic": "prompt is too long",
}


@BOTH
@EVERY
async def test_too_long_a_prompt_is_reported_as_the_provider_does(
    protocol: str, stream: bool
) -> None:
    async with plays(fault="context_overflow") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert OVERFLOW[protocol] in response.body.decode()
    inside = protocol == "responses" and stream
    assert response.status == (200 if inside else 400)
    if inside:
        assert response.events[-1]["type"] == "response.failed"
        assert response.events[-1]["response"]["error"]["code"] == "context_length_exceeded"
        assert TEXT[:10] not in response.body.decode()


@EVERY
async def test_bad_key_is_reported_as_the_provider_does(protocol: str) -> None:
    async with plays(fault="bad_key") as server:
        response = await ask(server, protocol, "hi")
    if protocol == "gemini":
        assert response.status == 400
        assert response.error["details"][0]["reason"] == "API_KEY_INVALID"
    else:
        assert response.status == 401


@EVERY
async def test_a_dropped_stream_ends_within_the_text(protocol: str) -> None:
    async with plays(fault="drop", chunk_characters=5) as server:
        response = await ask(server, protocol, "hi", stream=True)
    assert not response.whole
    assert 0 < len(text_of(protocol, response)) < len(TEXT)


@EVERY
async def test_a_dropped_body_ends_within_its_json(protocol: str) -> None:
    async with plays(fault="drop") as server:
        response = await ask(server, protocol, "hi")
    assert not response.whole
    with pytest.raises(ValueError):
        assert response.json


@BOTH
@EVERY
async def test_line_can_be_cut_before_any_output(protocol: str, stream: bool) -> None:
    async with plays(fault="drop_before_headers") as server:
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            await ask(server, protocol, "hi", stream=stream)
        assert server.requests[0].status == 0


LAST = {
    "gemini": "finishReason",
    "responses": "response.completed",
    "chat": '"finish_reason":"stop"',
    "anthropic": "message_stop",
}


@EVERY
async def test_a_truncated_stream_ends_well_without_its_last_event(protocol: str) -> None:
    async with plays() as server:
        assert LAST[protocol] in (await ask(server, protocol, "hi", stream=True)).body.decode()
    async with plays(fault="truncate") as server:
        response = await ask(server, protocol, "hi", stream=True)
    assert response.whole
    assert text_of(protocol, response).startswith(TEXT[:10])
    assert LAST[protocol] not in response.body.decode()


@BOTH
@EVERY
async def test_a_stream_can_turn_into_garbage(protocol: str, stream: bool) -> None:
    async with plays(fault="invalid_stream") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.whole
    assert b"\x00\x01<html>" in response.body
    assert LAST[protocol] not in response.body.decode(errors="replace")


@BOTH
@EVERY
async def test_json_can_be_broken(protocol: str, stream: bool) -> None:
    async with plays(fault="invalid_json") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.whole
    if stream:
        assert response.events[-1] is None
    else:
        with pytest.raises(ValueError):
            assert response.json


@BOTH
@EVERY
async def test_an_error_can_come_inside_a_stream(protocol: str, stream: bool) -> None:
    async with plays(fault="error_event", status=529, message="too many") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    if not stream:
        assert (response.status, response.error["message"]) == (529, "too many")
        return
    assert response.status == 200
    if protocol == "gemini":
        # Not as an event: Google's libraries look for an error that stands alone.
        error = json.loads(response.body.rpartition(b"\r\n\r\n")[2])["error"]
    else:
        last = response.events[-1]
        error = last["response"]["error"] if protocol == "responses" else last["error"]
    assert error["message"] == "too many"
    assert LAST[protocol] not in response.body.decode()
    if protocol == "anthropic":
        assert b"event: error\n" in response.body


@BOTH
@EVERY
async def test_bytes_that_are_no_utf8_can_stand_in_a_text(protocol: str, stream: bool) -> None:
    async with plays(fault="invalid_utf8") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    assert response.whole
    with pytest.raises(UnicodeDecodeError):
        response.body.decode()
    shown = HttpResponse(
        200, {}, response.body.decode(errors="replace").encode(), events=response.events
    )
    assert text_of(protocol, shown).startswith(TEXT)


@BOTH
@EVERY
async def test_a_flood_is_as_long_as_it_says_and_ends_as_it_says(
    protocol: str, stream: bool
) -> None:
    async with plays(flood_bytes=300_001, then="THE END") as server:
        response = await ask(server, protocol, "hi", stream=stream)
    text = text_of(protocol, response)
    assert len(text) == 300_001 + len("THE END")
    assert text.endswith("THE END")


@EVERY
async def test_a_hanging_server_says_nothing_and_ends_with_its_close(protocol: str) -> None:
    async with plays(fault="hang") as server:
        path, body = question(protocol, "hi", stream=True)
        asked = asyncio.create_task(send(server, path, body))
        await server.wait_for_requests(1)
        done, _ = await asyncio.wait([asked], timeout=0.05)
        assert not done
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        await asked


async def test_a_delay_comes_before_and_a_drip_between_the_events() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with plays(delay_seconds=0.05, drip_seconds=0.02, chunk_characters=20) as server:
        response = await ask(server, "gemini", "hi", stream=True)
    assert loop.time() - began >= 0.05 + 0.02 * (len(response.events) - 1)
    assert len(response.events) == 4
