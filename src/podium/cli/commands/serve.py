"""Command `podium serve`, and `podium serve tokens`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.commands.workers import queue_specs
from podium.cli.context import CliContext
from podium.cli.queue_worker import select_queues, serve_queues
from podium.config.os_user import os_user_name
from podium.config.project_identity import settle_identity
from podium.core.errors import BadInput
from podium.core.work import QueueSpec
from podium.render.text import local_time
from podium.web.access.tokens import ConsoleRole, TokenBook, TokenRecord, console_folder

if TYPE_CHECKING:
    from podium.core.model import UtcDatetime
    from podium.web.context import WebContext
    from podium.web.settings import ConsoleSettings


tokens_app = command_app()

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MAX_LENGTH = timedelta(days=3660)


@tokens_app.callback(invoke_without_command=True)
def tokens(context: typer.Context) -> None:
    """List, add or revoke the console's tokens.

    \b
    Example:
      podium serve tokens
      podium serve tokens add ann --role approver
      podium serve tokens revoke 1c0ffee1
    """
    if context.invoked_subcommand:
        return
    cli = CliContext(context.obj, lenient=True)
    records = _book(cli).all() if cli.has_folder else []

    def render() -> None:
        if not records:
            cli.screen.stderr_line("no tokens yet; `podium serve` creates the first one")
            return
        headers = ("ID", "NAME", "ROLES", "CREATED", "BY", "EXPIRES")
        cli.screen.table(headers, [_row(record) for record in records])

    cli.screen.answer({"tokens": [_record(record) for record in records]}, render)


@tokens_app.command()
def add(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Person it is for; recorded with all their decisions.")
    ],
    role: Annotated[
        list[ConsoleRole] | None,
        typer.Option(
            "--role",
            help="viewer, operator (start and steer) or approver (decide); may be repeated.",
        ),
    ] = None,
    expires: Annotated[
        str,
        typer.Option(
            "--expires", metavar="TIME", help="Lifetime such as 12h, 30d or 8w; default: never."
        ),
    ] = "",
) -> None:
    """Create a token and show it once. Only its hash is stored.

    \b
    Example:
      podium serve tokens add ann --role operator --role approver --expires 30d
      podium serve tokens add wallboard --role viewer
    """
    cli = CliContext(context.obj, lenient=True)
    now = datetime.now(UTC)
    until = _until(expires, now)
    folders = cli.configuration.folders
    folders.make_state()
    if not os.environ.get("PODIUM_DATABASE_URL"):
        settle_identity(folders, cli.screen.stderr_line)
    token, record = _book(cli).make(name, frozenset(role or ()), now, until)

    def render() -> None:
        cli.screen.line(token)
        cli.screen.stderr_line(
            f"{record.name} signs in with it at the console's /login, or with `podium login`; it is not shown again"
        )

    cli.screen.answer({"token": token, **_record(record)}, render)


@tokens_app.command()
def revoke(
    context: typer.Context,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `podium serve tokens` shows it.")
    ],
) -> None:
    """Revoke a token and all sessions that began with it.

    \b
    Example:
      podium serve tokens revoke 1c0ffee1
      podium serve tokens revoke 1c0ffee1 --json
    """
    cli = CliContext(context.obj, lenient=True)
    record = _book(cli).revoke(token_id)
    text = f"revoked token {record.id} of {record.name}; its sessions and streams end"
    cli.screen.answer({"revoked": record.id}, lambda: cli.screen.line(text))


def _book(cli: CliContext) -> TokenBook:
    return TokenBook(console_folder(Podium(cli.configuration, os.environ).key_dir))


def _until(expires: str, now: datetime) -> UtcDatetime | None:
    if not expires:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", expires.strip())
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta()
    if not timedelta() < length <= MAX_LENGTH:
        raise BadInput(
            f"{expires!r} is not a valid lifetime; use 12h, 30d or 8w, at most ten years"
        )
    return now + length


def _record(record: TokenRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude={"sha256"}) | {"roles": sorted(record.roles)}


def _row(record: TokenRecord) -> tuple[str, ...]:
    until = local_time(record.expires_at) if record.expires_at else "never"
    return (
        record.id,
        record.name,
        ", ".join(sorted(record.roles)) or "viewer",
        local_time(record.made_at),
        record.made_by,
        until,
    )


app = command_app()
app.add_typer(tokens_app, name="tokens")

PORT = 8765


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 picks a free port.")
    ] = PORT,
    socket: Annotated[
        Path | None,
        typer.Option("--socket", metavar="PATH", help="Listen on this unix socket instead."),
    ] = None,
    cert: Annotated[
        Path | None, typer.Option("--cert", metavar="FILE", help="Certificate for TLS (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Key of the certificate (PEM).")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A reverse proxy on this machine terminates TLS."),
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="HOST", help="Additional host name for browsers; may be repeated."
        ),
    ] = None,
    no_worker: Annotated[
        bool,
        typer.Option(
            "--no-worker", help="Only show runs and answer approvals; other workers host the runs."
        ),
    ] = False,
) -> None:
    """Start the web console until Ctrl-C: every run and approval, in a browser or on a phone.

    The first start creates a token for you and shows a link with it, once; `podium serve tokens add`
    creates more. Without TLS it serves this machine only. It hosts queued runs and schedules
    as `podium worker` does.

    \b
    Example:
      podium serve
      podium serve tokens add ann --role approver --expires 30d
      podium serve --host 0.0.0.0 --cert podium.pem --key podium.key --name podium.example.org
      podium serve --behind-proxy --name podium.example.org
    """
    if context.invoked_subcommand:
        return
    cli = CliContext(context.obj)
    settings = _settings(
        host=host,
        port=port,
        socket=socket,
        certificate=cert,
        key=key,
        behind_proxy=behind_proxy,
        names=tuple(name or ()),
    )
    cli.options.ending_note = "stopping; every run stays at its checkpoint"
    cli.options.parting_note = "every run stays at its checkpoint, for the next worker"
    queues = () if no_worker else select_queues(queue_specs(cli), (), ())
    cli.run(lambda podium: _serve(cli, podium, settings, queues))


def _settings(**values: object) -> ConsoleSettings:
    # Late: nothing else needs a web server.
    from podium.web.server import check_address
    from podium.web.settings import ConsoleSettings

    settings = ConsoleSettings.model_validate(values)
    check_address(settings)
    return settings


async def _serve(
    cli: CliContext, podium: Podium, settings: ConsoleSettings, queues: Sequence[QueueSpec]
) -> None:
    from podium.app.notices import notice_service
    from podium.web.app import build_app
    from podium.web.chat import link_paths
    from podium.web.context import WebContext
    from podium.web.server import served

    console = WebContext(podium, settings)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(build_app(console), settings))
        public = _public_url(url, settings)
        notices = notice_service(podium, console_url=public, path_to=link_paths(podium))
        await stack.enter_async_context(notices)
        _announce(cli, console, public)
        if not queues:
            await asyncio.Event().wait()
        names = ", ".join(queue.name for queue in queues)

        def on_serving() -> None:
            cli.screen.stderr_line(f"hosting {names}; Ctrl-C leaves every run at its checkpoint")

        await serve_queues(podium, queues, on_serving, cli.screen.stderr_line, once=False)


def _public_url(url: str, settings: ConsoleSettings) -> str:
    """Return the public URL: by its first name, where it has one."""
    if not settings.names:
        return url
    if settings.behind_proxy:
        return f"https://{settings.names[0]}"
    scheme, _, address = url.partition("://")
    named, port = settings.names[0], address.rpartition(":")[2]
    return f"{scheme}://{named}" if ":" in named else f"{scheme}://{named}:{port}"


def _announce(cli: CliContext, console: WebContext, url: str) -> None:
    """Print the console's URL, on the first start with a token that is not shown again."""
    if console.settings.socket is not None and not console.settings.names:
        where = f"curl --unix-socket {url} http://localhost/api/v1/runs"
    else:
        where = url
    if console.tokens.all():
        command = "`podium serve tokens add NAME --role operator --role approver`"
        text = f"console at {where}; sign in with your token, or create another: {command}"
        cli.screen.answer({"url": url}, lambda: cli.screen.line(text))
        return
    from podium.web.access.tokens import ConsoleRole

    # Whoever starts the console is its user of the operating system, whatever PODIUM_USER says.
    name = os_user_name()
    token, _ = console.tokens.make(name, frozenset(ConsoleRole), console.podium.clock.now())
    link = f"{url}/login#token={token}" if where == url else ""

    def human() -> None:
        cli.screen.line(link or f"{where} -H 'Authorization: Bearer {token}'")
        cli.screen.stderr_line(
            f"this is {name}'s console token, with every role; it is not shown again"
        )

    cli.screen.answer({"url": url, "token": token, "link": link}, human)
