"""The relay: a request waits as files and on a page until somebody has written its answer."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from podium.core.errors import NotPossibleNow
from podium.testing import retry_until
from podium.testing.modelserver import ModelServer
from podium.testing.modelserver.relay import ExchangeFolder, Relay
from tests.integration.testing.modelserver_client import (
    PROTOCOLS,
    HttpResponse,
    ask,
    calls_of,
    question,
    send,
    text_of,
)
from tests.soaking import in_soak

EVERY = pytest.mark.parametrize("protocol", PROTOCOLS)
ONE = pytest.mark.parametrize("protocol", [PROTOCOLS[0], *map(in_soak, PROTOCOLS[1:])])
BOTH = pytest.mark.parametrize("stream", [False, True])
KEY = "sk-very-secret-and-long-1234"


class Harness:
    """A relay on its own port, and whoever answers."""

    def __init__(self, server: ModelServer, relay: Relay) -> None:
        self.server = server
        self.relay = relay
        self.folder = relay.folder

    async def waiting(self, name: str = "0001") -> Mapping[str, Any]:
        """The raw request, once it is there."""
        path = self.folder / f"{name}-request.json"
        await retry_until(path.exists)
        return dict(json.loads(path.read_text()))

    def readable(self, name: str = "0001") -> str:
        return (self.folder / f"{name}-request.md").read_text()

    def write(self, name: str, content: str | bytes | Mapping[str, Any]) -> None:
        if isinstance(content, Mapping):
            content = json.dumps(content)
        draft = self.folder / "draft"
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(self.folder / name)

    async def error(self, name: str = "0001") -> str:
        path = self.folder / f"{name}-answer.error"
        await retry_until(path.exists)
        return path.read_text()

    async def closed(self, name: str = "0001") -> str:
        path = self.folder / f"{name}-closed.json"
        await retry_until(path.exists)
        return str(json.loads(path.read_text())["state"])

    async def page(self, name: str = "", form: Mapping[str, str] | None = None) -> HttpResponse:
        path = self.relay.page_path + name
        if form is None:
            return await send(self.server, path, method="GET")
        return await send(self.server, path, urlencode(form).encode())


@asynccontextmanager
async def relaying(folder: Path, **options: Any) -> AsyncIterator[Harness]:
    with ExchangeFolder(folder) as exchanges:
        relay = Relay(exchanges, **options)
        async with ModelServer.by_hand(relay) as server:
            yield Harness(server, relay)


@asynccontextmanager
async def asked(
    harness: Harness, *arguments: Any, **options: Any
) -> AsyncIterator[asyncio.Task[HttpResponse]]:
    task = asyncio.create_task(ask(harness.server, *arguments, **options))
    try:
        yield task
    finally:
        task.cancel()


@pytest.mark.sample(3)
@BOTH
@EVERY
async def test_text_and_calls_go_back_in_the_protocol_that_asked(
    protocol: str, stream: bool, tmp_path: Path
) -> None:
    async with relaying(tmp_path) as harness:
        async with asked(harness, protocol, "Do it.", stream=stream, tools=["f", "g"]) as reply:
            request = await harness.waiting()
            calls = [{"name": "f", "arguments": {"a": [1, "ü"]}}, {"name": "g"}]
            harness.write("0001-answer.json", {"text": "Now.", "calls": calls})
            output = await reply
        assert await harness.closed() == "answered"
    assert (request["protocol"], request["streamed"]) == (protocol, stream)
    assert (output.status, text_of(protocol, output)) == (200, "Now.")
    assert calls_of(protocol, output) == [("f", {"a": [1, "ü"]}), ("g", {})]


@BOTH
@ONE
async def test_plain_text_is_an_answer_and_silence_keeps_the_line_alive(
    protocol: str, stream: bool, tmp_path: Path
) -> None:
    async with relaying(tmp_path, keep_alive_seconds=0.02) as harness:
        path, body = question(protocol, "hi", stream=stream)
        line = http.client.HTTPConnection("127.0.0.1", harness.server.port, timeout=120)
        try:
            await asyncio.to_thread(line.request, "POST", path, json.dumps(body))
            # Comes while nobody has answered.
            answer = await asyncio.to_thread(line.getresponse)
            first = await asyncio.to_thread(answer.read1)
            assert not (tmp_path / "0001-closed.json").exists()
            harness.write("0001-answer.md", "Good\nday.\n")
            rest = await asyncio.to_thread(answer.read)
        finally:
            line.close()
    output = HttpResponse(answer.status, {}, first + rest)
    if stream:
        blocks = output.body.replace(b"\r\n", b"\n").split(b"\n\n")
        lines = [part for block in blocks for part in block.split(b"\n") if part[:6] == b"data: "]
        output.events = [json.loads(item[6:]) for item in lines if item != b"data: [DONE]"]
    assert text_of(protocol, output) == "Good\nday."


@EVERY
async def test_the_readable_file_shows_all_that_the_model_is_sent(
    protocol: str, tmp_path: Path
) -> None:
    system: dict[str, dict[str, Any]] = {
        "gemini": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
        "responses": {"instructions": "Be brief."},
        "chat": {},
        "anthropic": {"system": [{"type": "text", "text": "Be brief."}]},
    }
    async with relaying(tmp_path) as harness:
        path, body = question(protocol, "Fix ```a``` now.", results=1, tools=["f"])
        body |= {**system[protocol], "temperature": 0.25}
        if protocol == "chat":
            body["messages"][0]["content"] = "Be brief."
        reply = asyncio.create_task(send(harness.server, path, body))
        assert (await harness.waiting())["body"] == body
        text = harness.readable()
        harness.write("0001-answer.md", "ok")
        await reply
    assert "## System (9 characters)\n\n```\nBe brief.\n```" in text
    assert "### 1. user (16 characters)\n\n````\nFix ```a``` now.\n````" in text
    assert "### 2. call of " in text
    assert "### 3. result of" in text
    assert re.search(r"### f \(\d+ characters\)", text)
    assert '"command"' in text
    assert '"temperature": 0.25' in text
    assert f"* protocol: {protocol}, not streamed" in text
    assert re.search(r"\* size: [\d,]+ bytes; characters: system 9, messages \d+, tools \d+", text)
    assert "`0001-answer.json`" in text


async def test_a_later_request_shows_what_is_new_and_what_was_asked_before(tmp_path: Path) -> None:
    async with relaying(tmp_path) as harness:
        for number, results in enumerate((0, 1, 1), 1):
            async with asked(harness, "anthropic", "hi", results=results) as reply:
                await harness.waiting(f"{number:04d}")
                harness.write(f"{number:04d}-answer.md", "ok")
                await reply
        second, third = harness.readable("0002"), harness.readable("0003")
    assert second.index("### 1. user") < second.index("## New since request 0001")
    assert second.index("## New since request 0001") < second.index("### 2. call")
    assert "* same body as request 0002" in third


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("answer.json", "{", "it is not valid JSON"),
        in_soak("answer.json", "[]", "it must be a JSON object"),
        ("answer.json", "{}", 'it has no content; give "text", "calls" or both'),
        in_soak("answer.json", '{"text": 1}', '"text" must be a string'),
        ("answer.json", '{"content": "x"}', "unknown key 'content'; keys: text, calls"),
        in_soak("answer.json", '{"calls": {}}', '"calls" must be a list'),
        ("answer.json", '{"calls": [{"name": "h"}]}', "no tool 'h'; offered: f, g"),
        ("answer.json", '{"calls": [{"name": "f", "arguments": "x"}]}', "must be an object"),
        in_soak("answer.json", '{"calls": [{"name": "f", "args": {}}]}', "unknown key 'args'"),
        in_soak("answer.json", "[" * 100_000, "it is not valid JSON"),
        in_soak("answer.md", " \n", "it is empty"),
        ("answer.md", b"\xff", "it is not valid UTF-8"),
    ],
)
async def test_a_malformed_answer_is_explained_and_the_request_keeps_waiting(
    name: str, content: str | bytes, problem: str, tmp_path: Path
) -> None:
    async with (
        relaying(tmp_path) as harness,
        asked(harness, "chat", "hi", tools=["f", "g"]) as reply,
    ):
        await harness.waiting()
        harness.write(f"0001-{name}", content)
        words = await harness.error()
        assert problem in words
        assert '{"text": "I look first."' in words
        assert not reply.done()
        harness.write(f"0001-{name}", {"text": "ok"} if name.endswith("json") else "ok")
        assert text_of("chat", await reply) == "ok"
        assert await harness.closed() == "answered"
        assert not (tmp_path / "0001-answer.error").exists()


async def test_a_tool_of_plain_text_gets_its_input(tmp_path: Path) -> None:
    async with relaying(tmp_path) as harness:
        _, body = question("responses", "hi")
        body["tools"] = [{"type": "custom", "name": "apply_patch", "description": "Patch."}]
        reply = asyncio.create_task(send(harness.server, "/v1/responses", body))
        await harness.waiting()
        call: dict[str, Any] = {"name": "apply_patch", "arguments": {"patch": "x"}}
        harness.write("0001-answer.json", {"calls": [call]})
        assert '"arguments": {"input": "…"}' in await harness.error()
        call["arguments"] = {"input": "*** Begin Patch"}
        harness.write("0001-answer.json", {"calls": [call]})
        assert calls_of("responses", await reply) == [("apply_patch", "*** Begin Patch")]


@pytest.mark.sample(1)
@pytest.mark.parametrize("keep_alive_seconds", [60.0, 0.02])
@BOTH
@ONE
async def test_nobody_answers_in_time(
    protocol: str, stream: bool, keep_alive_seconds: float, tmp_path: Path
) -> None:
    options = {"timeout_seconds": 0.2, "keep_alive_seconds": keep_alive_seconds}
    async with relaying(tmp_path, **options) as harness:
        response = await ask(harness.server, protocol, "hi", stream=stream)
        assert await harness.closed() == "timed out"
    words = b"request 0001 was not answered within 0.2 s"
    if keep_alive_seconds == 60.0:
        assert (response.status, words in response.body) == (504, True)
    elif stream:
        assert words in response.body
    else:
        assert not response.whole


async def test_a_client_that_leaves_and_a_server_that_ends_close_the_request(
    tmp_path: Path,
) -> None:
    path, body = question("chat", "hi")
    async with relaying(tmp_path) as harness:
        line = http.client.HTTPConnection("127.0.0.1", harness.server.port, timeout=120)
        await asyncio.to_thread(line.request, "POST", path, json.dumps(body))
        await harness.waiting()
        line.close()
        assert await harness.closed() == "client left"
        async with asked(harness, "chat", "hi") as reply:
            await harness.waiting("0002")
            await harness.server.__aexit__(None, None, None)
            with suppress(http.client.RemoteDisconnected, ConnectionError):
                await reply
        assert await harness.closed("0002") == "server ended"


async def test_a_folder_is_gone_on_with_after_a_kill_and_served_once(tmp_path: Path) -> None:
    (tmp_path / "0007-request.json").write_text("{}")
    (tmp_path / "0009-answer.md").write_text("of an earlier day")
    async with relaying(tmp_path) as harness:
        assert await harness.closed("0007") == "server ended"
        with pytest.raises(NotPossibleNow, match="another model server uses"):
            ExchangeFolder(tmp_path)
        async with asked(harness, "chat", "hi") as reply:
            await harness.waiting("0010")
            harness.write("0010-answer.md", "ok")
            assert text_of("chat", await reply) == "ok"


async def test_keys_of_clients_stand_in_no_file(tmp_path: Path) -> None:
    headers = {
        "Authorization": f"Bearer {KEY}",
        "x-api-key": f"{KEY}-2",
        "x-other-token": f"{KEY}-3",
        "User-Agent": "tester/1",
    }
    async with relaying(tmp_path) as harness:
        path, body = question("gemini", f"My key is {KEY}.")
        reply = asyncio.create_task(
            send(harness.server, f"{path}?key={KEY}-4", body, headers=headers)
        )
        request = await harness.waiting()
        harness.write("0001-answer.md", "ok")
        await reply
        kept = repr(harness.server.requests[0].path)
    files = "".join(file.read_text() for file in tmp_path.iterdir())
    assert KEY not in files + kept
    assert "My key is [key]." in files
    assert request["headers"] == {"user-agent": "tester/1"}


async def test_the_page_lists_shows_and_answers(tmp_path: Path) -> None:
    async with relaying(tmp_path) as harness:
        assert "No requests yet" in (await harness.page()).body.decode()
        async with asked(harness, "chat", "<script>alert(1)</script>", tools=["f"]) as reply:
            await harness.waiting()
            listed = (await harness.page()).body.decode()
            assert "1 waiting" in listed
            assert '<a href="0001">0001</a>' in listed
            shown = await harness.page("0001")
            assert "&lt;script&gt;" in shown.body.decode()
            assert "<script" not in shown.body.decode()
            assert "default-src 'none'" in shown.headers["content-security-policy"]
            wrong = await harness.page("0001", {"text": "kept words", "calls": "[{"})
            assert wrong.status == 400
            assert "the calls are not valid JSON" in wrong.body.decode()
            assert "kept words" in wrong.body.decode()
            calls = json.dumps([{"name": "f", "arguments": {"a": 1}}])
            sent = await harness.page("0001", {"text": "Now.\r\nYes.", "calls": calls})
            assert (sent.status, sent.headers["location"]) == (303, harness.relay.page_path)
            output = await reply
        assert text_of("chat", output) == "Now.\nYes."
        assert calls_of("chat", output) == [("f", {"a": 1})]
        late = await harness.page("0001", {"text": "again"})
        assert (late.status, "is no longer waiting: answered" in late.body.decode()) == (400, True)


async def test_the_page_is_for_who_knows_its_address(tmp_path: Path) -> None:
    async with relaying(tmp_path) as harness, asked(harness, "chat", "private words") as reply:
        await harness.waiting()
        for path in ("/page/", "/page/guess/", "/page/guess/0001"):
            response = await send(harness.server, path, method="GET")
            assert (response.status, b"private" in response.body) == (404, False)
        guess = await send(harness.server, "/page/guess/0001", urlencode({"text": "x"}).encode())
        assert guess.status == 404
        assert not reply.done()
        token = harness.relay.page_path.split("/")[2]
        await harness.page()
        assert token not in repr(harness.server.requests)


async def test_a_wrong_key_lists_and_counts_do_not_wait(tmp_path: Path) -> None:
    async with relaying(tmp_path, key=KEY) as harness:
        assert (await ask(harness.server, "chat", "hi")).status == 401
        headers = {"Authorization": f"Bearer {KEY}"}
        models = await send(harness.server, "/v1/models", method="GET", headers=headers)
        assert models.json["data"][0]["id"] == "model-by-hand"
        path, body = question("anthropic", "hi")
        counted = await send(harness.server, f"{path}/count_tokens", body, headers=headers)
        assert counted.json["input_tokens"] > 0
    assert list(tmp_path.glob("*-request.*")) == []


async def test_a_folder_that_cannot_be_written_fails_the_request(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    async with relaying(folder) as harness:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        response = await ask(harness.server, "chat", "hi")
    assert response.status == 500
    assert "cannot be written" in response.error["message"]


async def test_the_answer_on_the_page_of_the_docs_can_be_sent(tmp_path: Path) -> None:
    docs = (Path(__file__).parents[3] / "docs" / "model-relay.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", docs, re.DOTALL)
    async with (
        relaying(tmp_path) as harness,
        asked(harness, "chat", "hi", tools=["read_file"]) as reply,
    ):
        await harness.waiting()
        harness.write("0001-answer.json", example)
        assert calls_of("chat", await reply) == [("read_file", {"path": "a.txt"})]
        names = {path.name for path in tmp_path.iterdir() if path.name != ".lock"}
        assert {name for name in names if f"`{name}`" not in docs} == set()
