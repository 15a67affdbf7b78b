"""Addresses as sources: whatever answers there, and however slowly, the look says it in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podium.jobs.sense.io import HttpSource
from tests.unit.bridge.sources_harness import SECRET, Harness, only

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[str]:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(once, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def answering(*answers: bytes, requests: list[bytes] | None = None) -> Serve:
    """Gives one answer to each question, the last one again and again."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = await reader.readuntil(b"\r\n\r\n")
        if requests is not None:
            requests.append(question)
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()

    return serve


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_address_reports_its_status_and_body(harness: Harness) -> None:
    messages: list[bytes] = []
    async with served(answering(answer(b'{"up": true}'), requests=messages)) as url:
        source = HttpSource(harness.deps, "site", f"{url}/health?full=1")
        sensed = await only(source)
    assert sensed.content == {"status": 200, "body": {"up": True}}
    assert sensed.place == f"{url}/health?full=1"
    assert messages[0].startswith(b"GET /health?full=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    async with served(answering(answer(b"down", "503 No"))) as url:
        assert (await only(HttpSource(harness.deps, "site", url))).content == {
            "status": 503,
            "body": "down",
        }


async def test_a_mark_and_the_look_after_it_ask_once(harness: Harness) -> None:
    messages: list[bytes] = []
    async with served(answering(answer(b"1"), answer(b"2"), requests=messages)) as url:
        source = HttpSource(harness.deps, "site", url)
        mark = await source.etag()
        assert (await source.look()).mark == mark
        assert len(messages) == 1
        assert await source.etag() != mark


async def test_redirects_are_followed_on_the_same_host_alone(harness: Harness) -> None:
    moved = answer(b"", "302 Found", "Location: /there")
    async with served(answering(moved, answer(b"here"))) as url:
        look = await HttpSource(harness.deps, "site", url).look()
    assert look.found[0].content == {"status": 200, "body": "here"}
    async with served(answering(moved)) as url:
        sensed = await only(HttpSource(harness.deps, "site", url))
    assert (sensed.condition, "more than 3 redirects" in sensed.why) == ("unreadable", True)
    asked: list[bytes] = []
    async with served(answering(answer(b"secret"), requests=asked)) as other:
        for target in (other, "http://localhost:1/", "file:///etc/passwd", "//169.254.169.254/"):
            away = answer(b"", "302 Found", f"Location: {target}")
            async with served(answering(away)) as url:
                sensed = await only(HttpSource(harness.deps, "site", url))
            assert (target, sensed.condition) == (target, "unreadable")
    assert asked == []


@pytest.mark.parametrize(
    "url",
    ["", "file:///etc/passwd", "ftp://127.0.0.1/", "http://", "http://[::1", "http://127.0.0.1:99999/", "gopher:x", "http://127.0.0.1:0/"],
)  # fmt: skip
async def test_what_is_no_address_of_the_web_is_not_asked(harness: Harness, url: str) -> None:
    assert (await only(HttpSource(harness.deps, "site", url))).condition == "unreadable"


async def test_a_login_in_an_address_is_refused_and_not_shown(harness: Harness) -> None:
    sensed = await only(HttpSource(harness.deps, "site", "http://uma:passw0rd@127.0.0.1/"))
    assert (sensed.condition, "contains credentials" in sensed.why) == ("unreadable", True)
    assert "passw0rd" not in sensed.model_dump_json()


async def test_secrets_are_taken_out_of_address_and_body(harness: Harness) -> None:
    async with served(answering(answer(f'{{"key": "{SECRET}"}}'.encode()))) as url:
        sensed = await only(HttpSource(harness.deps, "site", f"{url}/?key={SECRET}"))
    assert sensed.content == {"status": 200, "body": {"key": "[redacted]"}}
    assert SECRET not in sensed.model_dump_json()


@pytest.mark.parametrize(
    ("raw", "condition", "words"),
    [
        (answer(b"x" * 1_001), "too_large", "larger than 1000 bytes"),
        (answer(b"\0\1\2"), "binary", "NUL bytes"),
        (b"SSH-2.0-OpenSSH\r\n", "unreadable", "not an HTTP response"),
        (b"", "unreadable", "not an HTTP response"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000, "unreadable", "not an HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", "malformed", "incomplete"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", "unreadable", "no answer"),
    ],
)
async def test_unusable_answer_is_reported_with_its_reason(
    harness: Harness, raw: bytes, condition: str, words: str
) -> None:
    harness.file_bytes = 1_000
    async with served(answering(raw)) as url:
        sensed = await only(HttpSource(harness.deps, "site", url, timeout_seconds=30))
    assert (sensed.condition, words in sensed.why) == (condition, True), sensed.why


async def test_nobody_there_is_unreadable(harness: Harness) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        sensed = await only(HttpSource(harness.deps, "site", f"http://127.0.0.1:{port}/"))
    assert (sensed.condition, "refused" in sensed.why) == ("unreadable", True)


async def test_a_server_that_greets_without_encryption_is_unreadable(harness: Harness) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"plain"))
        await writer.drain()

    async with served(plain) as url:
        secured = HttpSource(
            harness.deps, "site", url.replace("http:", "https:"), timeout_seconds=60
        )
        assert (await secured.look()).found[0].condition == "unreadable"


async def test_an_answer_that_never_ends_is_given_up_and_its_thread_with_it(
    harness: Harness,
) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(1_000):
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with served(drip) as url:
        await _given_up(HttpSource(harness.deps, "site", url, timeout_seconds=0.5))


async def test_a_server_that_says_nothing_is_given_up_while_it_should_greet(
    harness: Harness,
) -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(listen) as url:
        secured = url.replace("http:", "https:")
        await _given_up(HttpSource(harness.deps, "site", secured, timeout_seconds=0.5))


async def _given_up(source: HttpSource) -> None:
    [sensed] = (await source.look()).found
    assert (sensed.condition, "no answer" in sensed.why) == ("unreadable", True)
    # Returns when every thread has.
    async with asyncio.timeout(120):
        await asyncio.get_running_loop().shutdown_default_executor()
