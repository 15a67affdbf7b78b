"""Recording a provider's answers, which is another model server here, and replaying them."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import BadInput, ConfigInvalid
from podium.testing import retry_until
from podium.testing.modelserver import ModelServer, Script
from podium.testing.modelserver.cassette import (
    CassetteReader,
    CassetteWriter,
    Recorded,
    normal_text,
    without_secrets,
)
from podium.testing.modelserver.recorder import Recorder, Upstream
from tests.integration.testing.modelserver_client import PROTOCOLS, ask, question, send, text_of

KEY = "sk-very-secret-1234"
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "Cookie": "session=cookie-secret-99",
    "OpenAI-Organization": "org-secret-77",
}
SCRIPT = Script.by_marker(
    {
        "talk": [{"text": "Good day to you. " * 9, "headers": {"Set-Cookie": "sid=set-secret-55"}}],
        "echo": [{"text": f"your key is {KEY}, in two events", "chunk_characters": 18}],
        "busy": [{"status": 429, "retry_after": 4}],
        "odd": [{"text": "x", "fault": "invalid_utf8"}],
        "cut": [{"text": "one two three four", "fault": "drop"}],
    }
)


@asynccontextmanager
async def recorded(provider: ModelServer, tape: Path) -> AsyncIterator[ModelServer]:
    """A recorder in front of a provider."""
    async with provider, ModelServer.recording(provider.url, tape) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_was_recorded_is_replayed_byte_for_byte(
    protocol: str, stream: bool, tmp_path: Path
) -> None:
    tape = tmp_path / "tape.jsonl"
    async with ModelServer(SCRIPT, key=KEY) as provider:
        async with ModelServer.recording(provider.url, tape) as server:
            first = await ask(server, protocol, "SCRIPT:talk", stream=stream, headers=HEADERS)
            assert server.requests[0].rule == "recorded"
            assert server.prompts() == ["SCRIPT:talk"]
        assert provider.requests[0].has_key
    assert first.status == 200
    assert "set-cookie" not in first.headers
    async with ModelServer.replaying(tape) as server:
        again = await ask(server, protocol, "SCRIPT:talk", stream=stream)
        assert (again.status, again.body) == (200, first.body)
        assert again.headers["content-type"] == first.headers["content-type"]
        assert server.requests[0].rule == "replayed"
    assert text_of(protocol, again) == "Good day to you. " * 9


async def test_nobodys_secret_is_on_the_cassette(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with recorded(ModelServer(SCRIPT), tape) as server:
        for marker in ("talk", "echo"):
            for stream in (False, True):
                response = await ask(
                    server, "chat", f"SCRIPT:{marker}", stream=stream, headers=HEADERS
                )
        path, body = question("gemini", "SCRIPT:talk")
        await send(server, f"{path}?key={KEY}", body, headers={"x-goog-api-key": KEY})
    assert KEY in text_of("chat", response)
    written = tape.read_text()
    assert len(written.splitlines()) == 5
    for secret in (KEY, "cookie-secret-99", "org-secret-77", "set-secret-55"):
        assert secret not in written
    whole = "".join(
        chunk["text"] for line in written.splitlines() for chunk in json.loads(line)["chunks"]
    )
    assert KEY not in whole
    assert "your key is [removed]" in whole
    assert stat.S_IMODE(tape.stat().st_mode) == 0o600


async def test_errors_and_odd_bytes_are_recorded_too(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with recorded(ModelServer(SCRIPT), tape) as server:
        await ask(server, "anthropic", "SCRIPT:busy")
        odd = await ask(server, "anthropic", "SCRIPT:odd")
    async with ModelServer.replaying(tape) as server:
        busy = await ask(server, "anthropic", "SCRIPT:busy")
        assert (busy.status, busy.headers["retry-after"]) == (429, "4")
        assert (await ask(server, "anthropic", "SCRIPT:odd")).body == odd.body


async def test_equal_requests_get_their_answers_in_order_and_then_the_last(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    script = {"default": {"each_time": True, "steps": ["one", "two"]}}
    async with recorded(ModelServer(script), tape) as server:
        for _ in range(2):
            await ask(server, "chat", "again")
    async with ModelServer.replaying(tape) as server:
        messages = [text_of("chat", await ask(server, "chat", "again")) for _ in range(3)]
    assert messages == ["one", "two", "two"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_request_not_on_the_cassette_is_reported_with_how_to_record_it(
    protocol: str, tmp_path: Path
) -> None:
    tape = tmp_path / "tape.jsonl"
    tape.touch()
    async with ModelServer.replaying(tape) as server:
        response = await ask(server, protocol, "something new")
        assert response.status == 404
        for words in ("something new", "m-1", f"--record {tape} --upstream URL"):
            assert words in response.error["message"]
        assert (await send(server, "/elsewhere", {})).status == 404


async def test_what_a_provider_breaks_off_is_not_recorded(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with recorded(ModelServer(SCRIPT), tape) as server:
        response = await ask(server, "chat", "SCRIPT:cut", stream=True)
        assert not response.whole
    assert tape.read_bytes() == b""


async def test_unreachable_provider_is_reported(tmp_path: Path) -> None:
    async with ModelServer(SCRIPT) as provider:
        pass
    async with ModelServer.recording(provider.url, tmp_path / "tape.jsonl") as server:
        response = await ask(server, "chat", "hi")
    assert response.status == 502
    assert f"127.0.0.1:{provider.port} cannot be reached" in response.error["message"]


async def test_every_provider_may_have_its_own_url(tmp_path: Path) -> None:
    async with (
        ModelServer({"default": {"steps": ["google"]}}) as google,
        ModelServer({"default": {"steps": ["openai"]}}) as other,
    ):
        upstream = {"gemini": google.url, "openai": f"{other.url}/v1"}
        async with ModelServer.recording(upstream, tmp_path / "tape.jsonl") as server:
            assert text_of("gemini", await ask(server, "gemini", "hi")) == "google"
            assert text_of("chat", await ask(server, "chat", "hi")) == "openai"
            missing = await ask(server, "anthropic", "hi")
            assert (missing.status, "no upstream is configured" in missing.error["message"]) == (
                502,
                True,
            )


async def test_a_stream_is_handed_on_as_it_comes(tmp_path: Path) -> None:
    step = {"text": "one two three", "chunk_characters": 4, "drip_seconds": 3600.0}
    tape = tmp_path / "tape.jsonl"
    async with recorded(ModelServer({"default": {"steps": [step]}}), tape) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        path, body = question("gemini", "hi", stream=True)
        raw = json.dumps(body).encode()
        writer.write(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(raw)))
        writer.write(raw)
        assert b'"one "' in await reader.readuntil(b'"one "')
        writer.close()
    assert tape.read_bytes() == b""


async def test_a_paced_replay_keeps_the_recorded_pauses(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    step = {"text": "one two", "chunk_characters": 4, "drip_seconds": 0.2}
    async with recorded(ModelServer({"default": {"steps": [step]}}), tape) as server:
        await ask(server, "gemini", "hi", stream=True)
    chunks = json.loads(tape.read_text())["chunks"]
    # Less than it was: where the answer is said to begin may be late on a busy machine.
    assert chunks[0]["at"] < chunks[-1]["at"] >= 0.05
    loop = asyncio.get_running_loop()
    async with ModelServer.replaying(tape, paced=True) as server:
        began = loop.time()
        await ask(server, "gemini", "hi", stream=True)
        assert loop.time() - began >= chunks[-1]["at"]


def test_a_secret_is_cut_out_also_where_two_pieces_share_it() -> None:
    apart = [(0.1, b"a secret-1 b"), (0.2, b"c")]
    assert without_secrets(apart, ["secret-1"]) == [(0.1, b"a [removed] b"), (0.2, b"c")]
    shared = [(0.1, b"a sec"), (0.2, b"ret-1 b")]
    assert without_secrets(shared, ["secret-1"]) == [(0.1, b"a [removed] b")]


ONE = Recorded("sha256:1", "POST", "/x", "m", 200, {}, [(0.0, b"one")])


def test_half_a_line_left_by_a_crash_does_not_count_and_is_written_over(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    writer = CassetteWriter(tape)
    writer.add(ONE)
    with tape.open("ab") as file:
        file.write(ONE.line()[:-1] + b"x" * 500)
    assert len(CassetteReader(tape)) == 1
    writer.add(ONE)
    assert tape.read_bytes() == ONE.line() * 2


def test_a_line_that_is_none_of_a_cassette_is_named(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    for bad in (b"{}", b"nothing", b"[" * 100_000, b'{"cassette": 2}', ONE.line()[:-3] + b"9"):
        tape.write_bytes(ONE.line() + bad + b"\n")
        with pytest.raises(ConfigInvalid, match=r"tape\.jsonl:2: is not a line of a cassette"):
            CassetteReader(tape)
    with pytest.raises(ConfigInvalid, match="cannot be read: No such file"):
        CassetteReader(tmp_path / "none")


async def test_an_answer_that_cannot_be_written_still_reaches_the_client(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    async with recorded(ModelServer(SCRIPT), tape) as server:
        tape.unlink()
        tape.mkdir()
        assert (await ask(server, "chat", "SCRIPT:talk")).status == 200
        assert server.requests[0].rule == "not recorded: Is a directory"


@pytest.mark.parametrize(
    ("upstream", "words"),
    [
        ("ftp://x", "is not the URL of a provider"),
        ("http://", "is not the URL of a provider"),
        ("http://x:port", "is not the URL of a provider"),
        ({"google": "http://x"}, "unknown provider 'google'; providers: gemini, openai, anthropic"),
        ({}, "no provider given"),
    ],
)
def test_an_upstream_that_is_none_is_refused(upstream: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words):
        Recorder(upstream, tmp_path / "tape.jsonl")


def test_a_cassette_nobody_can_write_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written: No such file"):
        Recorder("http://x", tmp_path / "no" / "tape.jsonl")


def test_a_base_url_may_hold_a_path() -> None:
    upstream = Upstream.at("https://example.org/api/")
    assert (upstream.secure, upstream.port) == (True, 443)
    assert upstream.target("/v1/responses") == "/api/v1/responses"
    assert Upstream.at("http://h:81/v1").target("/v1/responses") == "/v1/responses"


SAME = [
    ("in /tmp/run-1/repo", "in /home/ann/other"),
    ("on 2026-11-15T07:02:06Z", "on 2027-01-02"),
    ("Today is Sunday, November 15, 2026.", "Today is Friday, May 1, 2026."),
    ("at 07:02:06", "at 9:30 AM"),
    ("id 06276c49-de40-41cb-9b1c-13e20c8e7dce", "id a7cb086a-641c-4605-bf5c-2cf19c7cc947"),
    ("commit 9d1f5a6b", "commit 0e1f2a3b4c5d"),
    ("Chunk ID: c7b93c\nWall time: 0.1", "Chunk ID: facade\nWall time: 0.2"),
    ("call_4a65fda95c4b435db034953a", "call_3cd1759d586c058c555bfc6b"),
    ("took 0.0512 s, pid 12345", "took 1.25 s, pid 987654"),
    ("<session_context>a</session_context>hi", "<session_context>b\nc</session_context>hi"),
    ("<system-reminder>a</system-reminder>hi<system-reminder>", "hi<system-reminder>"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_differs_from_run_to_run_does_not_count(one: str, other: str) -> None:
    assert normal_text(one) == normal_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("add 2 and 3", "add 2 and 4"),
        ("use https://example.org/a", "use https://example.org/b"),
        ("the decade", "the facade"),
    ],
)
def test_what_was_asked_counts(one: str, other: str) -> None:
    assert normal_text(one) != normal_text(other)


async def test_ids_sessions_and_keys_in_the_query_do_not_count_but_words_do(
    tmp_path: Path,
) -> None:
    tape = tmp_path / "tape.jsonl"

    def body(text: str, number: int) -> dict[str, Any]:
        return {
            "model": "m",
            "input": [
                {"type": "message", "role": "user", "content": text, "id": f"msg_{number}"},
                {"type": "function_call", "call_id": f"call_{number}", "name": "t"},
                {"type": "function_call_output", "call_id": f"call_{number}", "output": "x"},
            ],
            "prompt_cache_key": f"session-{number}",
            "metadata": {"user": number},
        }

    async with recorded(ModelServer({"default": {"steps": ["hi"]}}), tape) as server:
        await send(server, "/v1/responses?key=one-secret-key", body("do it", 1))
    async with ModelServer.replaying(tape) as server:
        assert (await send(server, "/v1/responses", body("do it", 2))).status == 200
        assert (await send(server, "/v1/responses", body("do that", 1))).status == 404
        assert (await send(server, "/v1/responses?a=b", body("do it", 1))).status == 404


async def test_a_client_that_leaves_does_not_stop_the_recorder(tmp_path: Path) -> None:
    hanging = {"default": {"steps": [{"fault": "hang"}]}}
    async with ModelServer(hanging) as provider:
        async with ModelServer.recording(provider.url, tmp_path / "tape.jsonl") as server:
            asked = asyncio.create_task(ask(server, "chat", "hi"))
            await provider.wait_for_requests(1)
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            await asked
        await retry_until(lambda: provider.requests[0].status == 0)
    assert os.listdir(tmp_path) == ["tape.jsonl"]
