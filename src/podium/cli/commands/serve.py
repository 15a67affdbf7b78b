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
from podium.cli.context import Door
from podium.cli.queue_worker import serve_queues, wanted_queues
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
    """List who may come in to the console, or add and revoke tokens.

    \b
    Example:
      podium serve tokens
      podium serve tokens add ann --role approver
      podium serve tokens revoke 1c0ffee1
    """
    if context.invoked_subcommand:
        return
    door = Door(context.obj, lenient=True)
    kept = _book(door).all() if door.has_folder else []

    def words() -> None:
        if not kept:
            door.screen.aside("nobody may come in yet; `podium serve` makes the first token")
            return
        headers = ("ID", "NAME", "ROLES", "MADE", "BY", "EXPIRES")
        door.screen.table(headers, [_row(each) for each in kept])

    door.screen.answer({"tokens": [_record(each) for each in kept]}, words)


@tokens_app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Who it is for; stands beside all they decide.")],
    role: Annotated[
        list[ConsoleRole] | None,
        typer.Option(
            "--role",
            help="May be repeated. A viewer only looks; an operator starts and steers; an approver decides.",
        ),
    ] = None,
    expires: Annotated[
        str,
        typer.Option("--expires", metavar="TIME", help="After 12h, 30d or 8w, say; else never."),
    ] = "",
) -> None:
    """Make a token and show it, once. Only a hash of it is kept.

    \b
    Example:
      podium serve tokens add ann --role operator --role approver --expires 30d
    """
    door = Door(context.obj, lenient=True)
    now = datetime.now(UTC)
    until = _until(expires, now)
    folders = door.configuration.folders
    folders.make_state()
    if not os.environ.get("PODIUM_DATABASE_URL"):
        settle_identity(folders, door.screen.aside)
    token, kept = _book(door).make(name, frozenset(role or ()), now, until)

    def words() -> None:
        door.screen.line(token)
        door.screen.aside(
            f"{kept.name} comes in with it at the console's /login, or by `podium login`; it is shown only now"
        )

    door.screen.answer({"token": token, **_record(kept)}, words)


@tokens_app.command()
def revoke(
    context: typer.Context,
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `podium serve tokens` shows it.")
    ],
) -> None:
    """Let nobody in by this token any more, nor by the sessions that began with it.

    \b
    Example:
      podium serve tokens revoke 1c0ffee1
    """
    door = Door(context.obj, lenient=True)
    kept = _book(door).revoke(token_id)
    words = f"token {kept.id} of {kept.name} is revoked; its sessions and streams end"
    door.screen.answer({"revoked": kept.id}, lambda: door.screen.line(words))


def _book(door: Door) -> TokenBook:
    return TokenBook(console_folder(Podium(door.configuration, os.environ).key_dir))


def _until(expires: str, now: datetime) -> UtcDatetime | None:
    if not expires:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", expires.strip())
    length = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not timedelta() < length <= MAX_LENGTH:
        raise BadInput(
            f"{expires!r} is no time to expire after; say 12h, 30d or 8w, at most ten years"
        )
    return now + length


def _record(kept: TokenRecord) -> dict[str, Any]:
    return kept.model_dump(mode="json", exclude={"sha256"}) | {"roles": sorted(kept.roles)}


def _row(kept: TokenRecord) -> tuple[str, ...]:
    until = local_time(kept.expires_at) if kept.expires_at else "never"
    return (
        kept.id,
        kept.name,
        ", ".join(sorted(kept.roles)) or "viewer",
        local_time(kept.made_at),
        kept.made_by,
        until,
    )


app = command_app()
app.add_typer(tokens_app, name="tokens")

PORT = 8765


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Listen at this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")
    ] = PORT,
    socket: Annotated[
        Path | None,
        typer.Option("--socket", metavar="PATH", help="Listen at this unix socket instead."),
    ] = None,
    cert: Annotated[
        Path | None, typer.Option("--cert", metavar="FILE", help="TLS by this certificate (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="The certificate's key (PEM).")
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy of yours on this machine ends TLS in front."),
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="HOST", help="Browsers may ask for it by this name; may be repeated."
        ),
    ] = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Only show and decide; others host the runs.")
    ] = False,
) -> None:
    """Serve the console of this project until Ctrl-C: every run and every approval, in a browser or on a phone.

    The first start makes a token for you and shows a link with it, once; `podium serve tokens add`
    makes more. It serves this machine alone unless it has TLS, and hosts queued runs and schedules
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
    door = Door(context.obj)
    settings = _settings(
        host=host,
        port=port,
        socket=socket,
        certificate=cert,
        key=key,
        behind_proxy=behind_proxy,
        names=tuple(name or ()),
    )
    door.options.ending_words = "ending processes; every run stays at its checkpoint"
    door.options.parting_words = "every run stays at its checkpoint, for the next worker"
    queues = () if no_worker else wanted_queues(queue_specs(door), (), ())
    door.run(lambda podium: _serve(door, podium, settings, queues))


def _settings(**given: object) -> ConsoleSettings:
    # Late: nothing else needs a web server.
    from podium.web.server import refuse_open_address
    from podium.web.settings import ConsoleSettings

    settings = ConsoleSettings.model_validate(given)
    refuse_open_address(settings)
    return settings


async def _serve(
    door: Door, podium: Podium, settings: ConsoleSettings, queues: Sequence[QueueSpec]
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
        telling = notice_service(podium, console_url=public, path_to=link_paths(podium))
        await stack.enter_async_context(telling)
        _tell(door, console, public)
        if not queues:
            await asyncio.Event().wait()
        names = ", ".join(each.name for each in queues)

        def tell_serving() -> None:
            door.screen.aside(f"hosting {names}; Ctrl-C leaves every run at its checkpoint")

        await serve_queues(podium, queues, tell_serving, door.screen.aside, once=False)


def _public_url(url: str, settings: ConsoleSettings) -> str:
    """Where people reach it: by its first name, where it has one."""
    if not settings.names:
        return url
    if settings.behind_proxy:
        return f"https://{settings.names[0]}"
    scheme, _, place = url.partition("://")
    named, port = settings.names[0], place.rpartition(":")[2]
    return f"{scheme}://{named}" if ":" in named else f"{scheme}://{named}:{port}"


def _tell(door: Door, console: WebContext, url: str) -> None:
    """The first time with a token, which nobody sees again."""
    if console.settings.socket is not None and not console.settings.names:
        where = f"curl --unix-socket {url} http://localhost/api/v1/runs"
    else:
        where = url
    if console.tokens.all():
        words = f"the console is at {where}; `podium serve tokens add NAME` makes a token for it"
        door.screen.answer({"url": url}, lambda: door.screen.line(words))
        return
    from podium.web.access.tokens import ConsoleRole

    # Whoever starts the console is its user of the operating system, whatever PODIUM_USER says.
    name = os_user_name()
    token, _ = console.tokens.make(name, frozenset(ConsoleRole), console.podium.clock.now())
    link = f"{url}/login#token={token}" if where == url else ""

    def human() -> None:
        door.screen.line(link or f"{where} -H 'Authorization: Bearer {token}'")
        door.screen.aside(
            f"this is {name}'s token for the console, with every role; it is shown only now, and kept as a hash"
        )

    door.screen.answer({"url": url, "token": token, "link": link}, human)
