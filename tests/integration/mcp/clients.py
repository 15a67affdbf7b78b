"""Clients of the MCP door: the SDK's own, in this process, over pipes and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from podium.app.app import Podium, open_podium
from podium.app.approvals import approve
from podium.config.configuration import load_configuration
from podium.core.work import Run
from podium.mcp import McpContext, build_server, serve_http
from tests.integration.cli.command_runner import CommandRunner

TOKEN = "a-token-for-tests-only"


@dataclass
class Caller:
    """A client that is connected, and what it hears."""

    client: Client
    podium: Podium | None = None

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a call that did not fail."""
        response = await self.client.call_tool(tool, arguments)
        assert not response.is_error, response.content
        answer: dict[str, Any] = response.structured_content
        return answer

    async def fails(self, tool: str, **arguments: Any) -> str:
        """The words of a call that failed."""
        response = await self.client.call_tool(tool, arguments)
        assert response.is_error, response.content
        (words,) = response.content
        return str(getattr(words, "text", words))

    async def says_yes(self, approval_id: str, text: str = "") -> None:
        """As a person does, by the use case."""
        assert self.podium is not None
        podium = self.podium
        await approve(
            await podium.store(), podium.clock, podium.ids, approval_id, by="ann", comment=text
        )


async def by_nobody(podium: Podium, run: Run) -> str:
    return "nobody yet"


@asynccontextmanager
async def opened(cli: CommandRunner) -> AsyncIterator[Podium]:
    configuration = load_configuration(cli.environ, project=cli.project)
    async with open_podium(configuration, cli.environ) as podium:
        yield podium


@asynccontextmanager
async def beside(cli: CommandRunner) -> AsyncIterator[Caller]:
    """A client in this very process."""
    async with opened(cli) as podium:
        server = build_server(McpContext(podium, by_nobody))
        async with Client(server) as client:
            yield Caller(client, podium)


@asynccontextmanager
async def over_stdio(cli: CommandRunner, *options: str) -> AsyncIterator[Caller]:
    """A client that started `podium mcp` itself, as such clients do."""
    command, *words = cli.command("mcp", *options)
    server = StdioServerParameters(
        command=command, args=words, cwd=str(cli.project), env=cli.environ
    )
    async with Client(server) as client:
        yield Caller(client)


@asynccontextmanager
async def over_http(cli: CommandRunner) -> AsyncIterator[tuple[str, Podium]]:
    """The address of a door over HTTP."""
    async with opened(cli) as podium:
        server = build_server(McpContext(podium, by_nobody))
        async with serve_http(server, "127.0.0.1", 0, TOKEN) as url:
            yield url, podium


@asynccontextmanager
async def knowing(url: str, token: str) -> AsyncIterator[Client]:
    """A client that shows this token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60.0) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client
