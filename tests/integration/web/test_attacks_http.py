"""Malformed traffic: too much, too slow, or no HTTP at all. Others are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from podium.web.settings import ConsoleSettings
from tests.integration.web.console_harness import Stage, console

SMALL = ConsoleSettings(
    port=0,
    most_body_bytes=20_000,
    most_stranger_bytes=5_000,
    body_seconds=1.0,
    head_seconds=1.0,
    requests_per_minute=100_000,
)
PATIENCE_SECONDS = 60


@asynccontextmanager
async def line(
    stage: Stage,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection."""
    where = urlsplit(stage.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def raw_response(stage: Stage, *parts: bytes) -> bytes:
    """All that is answered to these bytes, until the other side closes."""
    async with asyncio.timeout(PATIENCE_SECONDS), line(stage) as (reader, writer):
        for part in parts:
            writer.write(part)
        answer = bytearray()
        try:
            while chunk := await reader.read(65536):
                answer += chunk
        except ConnectionResetError:
            pass
        return bytes(answer)


def head(stage: Stage, first: str, *more: str) -> bytes:
    host = urlsplit(stage.url).netloc
    return "\r\n".join([f"{first} HTTP/1.1", f"host: {host}", *more, "", ""]).encode("latin-1")


async def is_answering(stage: Stage) -> bool:
    async with stage.client() as client:
        return (await client.get("/api/v1/runs")).status_code == 200


async def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        known = f"authorization: Bearer {stage.token}"
        as_declared = head(stage, "POST /api/v1/runs", known, "content-length: 20001")
        assert b" 413 " in (await raw_response(stage, as_declared)).partition(b"\r\n")[0]
        # Without a length the bytes are counted.
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        chunked = head(stage, "POST /api/v1/runs", known, "transfer-encoding: chunked")
        assert b" 413 " in (await raw_response(stage, chunked, *[chunk] * 6)).partition(b"\r\n")[0]
        for method in ("GET", "DELETE"):
            asked = head(stage, f"{method} /api/v1/runs", known, "content-length: 20001")
            assert b" 413 " in (await raw_response(stage, asked)).partition(b"\r\n")[0]
        assert await is_answering(stage)


async def test_a_stranger_may_send_less(tmp_path: Path) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        asked = head(stage, "POST /login", "content-length: 5001")
        assert b" 413 " in (await raw_response(stage, asked)).partition(b"\r\n")[0]


@pytest.mark.soak
async def test_slow_clients_are_left_and_hold_up_nobody(tmp_path: Path) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        slow_body = head(stage, "POST /login", "content-length: 100")
        silent, trickling, half = await asyncio.gather(
            raw_response(stage),
            raw_response(stage, b"GET /login HTT"),
            raw_response(stage, slow_body, b"token="),
        )
        assert (silent, trickling) == (b"", b"")
        assert b" 408 " in half.partition(b"\r\n")[0]
        async with asyncio.timeout(PATIENCE_SECONDS), line(stage) as (reader, writer):
            # A second head on the same connection has the same deadline.
            writer.write(head(stage, "GET /healthz"))
            assert b" 200 " in await reader.readline()
            writer.write(b"GET /healthz HTT")
            while await reader.read(65536):
                pass
        assert await is_answering(stage)


async def test_hundreds_who_say_nothing_hold_up_nobody(tmp_path: Path) -> None:
    settings = SMALL.model_copy(update={"head_seconds": 600.0})
    async with console(tmp_path, settings=settings) as stage:
        where = urlsplit(stage.url)
        lines = [await asyncio.open_connection(where.hostname, where.port) for _ in range(300)]
        for _, writer in lines:
            writer.write(b"POST /login HTTP/1.1\r\nx-")
        assert await is_answering(stage)
        for _, writer in lines:
            writer.close()


async def test_what_is_no_http_is_refused_and_hurts_nobody(tmp_path: Path) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        host = urlsplit(stage.url).netloc.encode()
        for nonsense in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\x00\xff\xfe\r\n\r\n",
            b"GET /\x00 HTTP/1.1\r\nhost: " + host + b"\r\n\r\n",
            b"GET /a b HTTP/1.1\r\nhost: " + host + b"\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: " + host + b"\r\nx: " + b"y" * 40_000 + b"\r\n\r\n",
            b"POST /login HTTP/1.1\r\nhost: " + host + b"\r\ncontent-length: -1\r\n\r\n",
            b"POST /login HTTP/1.1\r\nhost: " + host + b"\r\ncontent-length: 1\r\n"
            b"content-length: 2\r\n\r\nab",
            b"POST /login HTTP/1.1\r\nhost: "
            + host
            + b"\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        ):
            answer = (await raw_response(stage, nonsense)).partition(b"\r\n")[0]
            # Who breaks off in the middle of a body may be given nothing.
            assert answer.startswith(b"HTTP/1.1 4") or not answer, (nonsense[:60], answer)
        two_names = head(stage, "GET /healthz", "host: evil.example")
        assert (await raw_response(stage, two_names)).split(b" ")[1] in (b"400", b"421")
        assert await is_answering(stage)


async def test_a_request_hidden_behind_another_is_not_answered_with_its_rights(
    tmp_path: Path,
) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        hidden = head(stage, "GET /api/v1/runs")
        both = head(
            stage,
            "POST /login",
            f"authorization: Bearer {stage.token}",
            f"content-length: {len(hidden)}",
            "transfer-encoding: chunked",
            "connection: close",
        )
        answer = await raw_response(stage, both, b"0\r\n\r\n", hidden)
        assert b'"runs"' not in answer


async def test_no_path_leads_out_of_the_static_files(tmp_path: Path) -> None:
    async with console(tmp_path, settings=SMALL) as stage:
        for path in (
            "/static/../app.py",
            "/static/%2e%2e/app.py",
            "/static/..%2fapp.py",
            "/static/%2e%2e%2f%2e%2e%2fweb%2fapp.py",
            "/static/..%5capp.py",
            "/static/....//app.py",
            "/static//etc/passwd",
            "/static/%2fetc%2fpasswd",
            "/static/vendor/../../app.py",
            "/static/podium.css%00.py",
            "/static/",
            "/static",
            "/static/vendor",
            "/static/vendor/",
        ):
            asked = head(stage, f"GET {path}", "connection: close")
            answer = await raw_response(stage, asked)
            assert answer.split(b" ")[1] in (b"303", b"404", b"400"), (path, answer[:80])
            assert b"build_app" not in answer
            assert b"root:" not in answer
            assert b"podium.js" not in answer.partition(b"<body")[2]
