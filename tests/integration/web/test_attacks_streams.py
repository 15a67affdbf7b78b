"""Many streams at once, and somebody who only wants an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from podium.testing import retry_until
from podium.web.settings import ConsoleSettings
from tests.integration.web.console_harness import Stage, console

STREAM = "/api/v1/events/stream"
FEW = ConsoleSettings(
    port=0, streams_per_person=3, most_streams=5, requests_per_minute=100_000, head_seconds=60.0
)
PATIENCE_SECONDS = 120


@asynccontextmanager
async def following(stage: Stage, token: str) -> AsyncIterator[int]:
    """The status of a stream, which stays open meanwhile. A bare connection: thousands must fit into a test."""
    where = urlsplit(stage.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        asked = f"GET {STREAM} HTTP/1.1\r\nhost: {where.netloc}\r\nauthorization: Bearer {token}\r\n\r\n"
        writer.write(asked.encode())
        status = int((await reader.readline()).split()[1])
        yield status
    finally:
        writer.close()


async def test_nobody_opens_more_streams_than_their_share(tmp_path: Path) -> None:
    async with console(tmp_path, settings=FEW) as stage, AsyncExitStack() as opened:
        other = stage.new_token("ann")
        own = [await opened.enter_async_context(following(stage, stage.token)) for _ in range(4)]
        assert own == [200, 200, 200, 429]
        others = [await opened.enter_async_context(following(stage, other)) for _ in range(3)]
        assert others == [200, 200, 503]
        async with stage.client() as client:
            refused = await client.get(STREAM)
            assert refused.headers["retry-after"]
            assert refused.headers["content-type"] == "application/problem+json"
            assert (await client.get("/api/v1/runs")).status_code == 200
        await opened.aclose()

        async def is_free() -> bool:
            async with following(stage, stage.token) as status:
                return status == 200

        assert await retry_until(is_free)


@pytest.mark.soak
@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.soak)])
async def test_others_are_answered_beside_many_open_streams(tmp_path: Path, count: int) -> None:
    settings = ConsoleSettings(port=0, streams_per_person=count, requests_per_minute=1_000_000)
    async with (
        asyncio.timeout(PATIENCE_SECONDS * max(1, count // 100)),
        console(tmp_path, settings=settings) as stage,
        AsyncExitStack() as opened,
    ):
        statuses = [
            await opened.enter_async_context(following(stage, stage.token)) for _ in range(count)
        ]
        assert set(statuses) == {200}
        await retry_until(lambda: stage.context.hub.followers == count)
        async with stage.client(stage.new_token("ann")) as client:
            assert (await client.get("/api/v1/runs")).status_code == 200
            assert (await client.get("/login")).status_code == 200
        # One more is refused, and takes nothing from the others.
        async with stage.client() as client, client.stream("GET", STREAM) as one_more:
            assert one_more.status_code == 429
        await opened.aclose()
        await retry_until(lambda: stage.context.hub.followers == 0)


async def test_excess_requests_are_shown_when_to_return_and_others_are_served(
    tmp_path: Path,
) -> None:
    settings = ConsoleSettings(port=0, requests_per_minute=20)
    async with console(tmp_path, settings=settings) as stage:
        async with stage.client() as client:
            codes = [(await client.get("/api/v1/runs")).status_code for _ in range(20)]
            assert codes == [200] * 20
            answer = await _until_refused(client)
            assert int(answer.headers["retry-after"]) >= 1
            assert (await client.get("/static/podium.css")).status_code == 200
        async with stage.client(stage.new_token("ann")) as other:
            assert (await other.get("/api/v1/runs")).status_code == 200


async def _until_refused(client: httpx.AsyncClient) -> httpx.Response:
    while (answer := await client.get("/api/v1/runs")).status_code != 429:
        pass
    return answer


async def test_a_reader_who_stops_reading_holds_up_nobody(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        where = urlsplit(stage.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=64)
        asked = f"GET /static/vendor/xterm-6.0.0/xterm.js HTTP/1.1\r\nhost: {where.netloc}\r\n\r\n"
        writer.write(asked.encode() * 20)
        assert await reader.readline()
        async with stage.client() as client:
            assert (await client.get("/api/v1/runs")).status_code == 200
        writer.close()
