"""`podium serve tokens`: who may come in to the console."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.domain.errors import BadInput
from podium.telling.wording import moment
from podium.web.access.people import ConsoleRole
from podium.web.access.tokens import KeptToken, TokenBook, console_folder
from podium.wiring import Podium
from podium.wiring.project_identity import settle_identity

if TYPE_CHECKING:
    from podium.domain.model import Moment

tokens_app = command_app()

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LONGEST = timedelta(days=3660)


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
    return TokenBook(console_folder(Podium(door.configuration, os.environ).vault))


def _until(expires: str, now: datetime) -> Moment | None:
    if not expires:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhdw])", expires.strip())
    length = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not timedelta() < length <= LONGEST:
        raise BadInput(
            f"{expires!r} is no time to expire after; say 12h, 30d or 8w, at most ten years"
        )
    return now + length


def _record(kept: KeptToken) -> dict[str, Any]:
    return kept.model_dump(mode="json", exclude={"sha256"}) | {"roles": sorted(kept.roles)}


def _row(kept: KeptToken) -> tuple[str, ...]:
    until = moment(kept.expires_at) if kept.expires_at else "never"
    return (
        kept.id,
        kept.name,
        ", ".join(sorted(kept.roles)) or "viewer",
        moment(kept.made_at),
        kept.made_by,
        until,
    )
