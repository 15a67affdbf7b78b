"""`podium mcp`."""

from __future__ import annotations

import asyncio
import os
import secrets
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.metrics_server import Address, read_address
from podium.core.errors import BadInput
from podium.core.work import Run
from podium.render.text import counted

app = command_app()


@app.command()
def mcp(
    context: typer.Context,
    http: Annotated[
        str,
        typer.Option(
            "--http",
            metavar="ADDRESS",
            help="Serve streamable HTTP at this address, such as 127.0.0.1:8766.",
        ),
    ] = "",
    worker: Annotated[
        bool,
        typer.Option(
            "--worker/--no-worker", help="Start a worker for submitted runs when none is running."
        ),
    ] = True,
) -> None:
    """Start an MCP server: clients submit work, follow it and use the gated tools of this project.

    Uses stdin and stdout until the client closes the connection; stdout carries only the protocol. With --http,
    listens on a loopback address, for clients with the token in PODIUM_MCP_TOKEN; without that
    variable a token is created and printed once, on stderr.

    Clients can request and read approvals. Only people can approve.

    \b
    Example:
      podium mcp --project ~/app
      podium mcp --http 127.0.0.1:8766
    """
    # Late: loading the protocol's package takes a second.
    from podium.mcp import McpContext, build_server, serve_http, serve_stdio

    cli = CliContext(context.obj)
    address = _own_address(http) if http else None
    cli.options.parting_note = "every run stays at its checkpoint"

    async def served(podium: Podium, run: Run) -> str:
        return await _served(podium, run) if worker else _left_to(run)

    async def work(podium: Podium) -> None:
        server = build_server(McpContext(podium, served))
        if address is None:
            await serve_stdio(server)
            return
        async with serve_http(server, *address, _token(cli)) as url:
            cli.screen.stderr_line(f"podium: MCP server at {url}; Ctrl-C stops it")
            await asyncio.Event().wait()

    cli.run(work)


def _own_address(text: str) -> Address:
    address = read_address(text)
    if not address.is_loopback:
        raise BadInput(
            f"--http {text!r} is not a loopback address; use 127.0.0.1:{address.port}, behind a TLS proxy "
            "of your own for other machines"
        )
    return address


def _token(cli: CliContext) -> str:
    from podium.mcp.server import TOKEN_VARIABLE

    if token := os.environ.get(TOKEN_VARIABLE, ""):
        return token
    made = secrets.token_urlsafe(32)
    cli.screen.stderr_line(f"podium: token (shown only once): {made}")
    return made


async def _served(podium: Podium, run: Run) -> str:
    from podium.app.work_request import queues_of
    from podium.cli.detached_run import ensure_served

    specs = {spec.name: spec for spec in queues_of(podium.configuration)}
    if (spec := specs.get(run.queue or "")) is None:
        return _left_to(run)
    handed = await ensure_served(podium, run, spec)
    if handed.taken:
        return "a worker took it"
    return (
        f"{counted(handed.workers, 'live worker')} on its queue"
        if handed.workers
        else _left_to(run)
    )


def _left_to(run: Run) -> str:
    return f"no worker yet; start one with `podium worker --queue {run.queue}`"
