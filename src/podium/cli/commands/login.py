"""Commands `podium login`, `logout` and `whoami`."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.identity import Login, identity
from podium.config.os_user import os_user_name
from podium.core.errors import BadInput, NotPossibleNow

app = command_app()

STDIN = "-"
MAX_CHARACTERS = 1_000


@app.command()
def login(
    context: typer.Context,
    argument: Annotated[str | None, typer.Argument(metavar="[-]", hidden=True)] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Read the token from stdin instead of asking for it.")
    ] = False,
) -> None:
    """Sign in to this project with a personal token of the console: your answers carry its name.

    The token is asked for, or read from stdin; it is never an argument, which other processes could read. It is
    stored in your own configuration folder, readable by you alone, and checked against the project's tokens
    whenever you answer. Without a login you answer as your operating-system user.

    \b
    Example:
      podium login
      podium login --token < token.txt
    """
    if argument not in (None, STDIN):
        raise BadInput(
            "a token must not be an argument, which other processes can read; revoke this one with "
            "`podium serve tokens revoke ID`, and pipe a new one to `podium login --token`"
        )
    cli = CliContext(context.obj, lenient=True)
    if not cli.has_folder:
        raise NotPossibleNow(
            "this project has no tokens yet; create one with `podium serve tokens add NAME --role approver`"
        )
    session = Login(cli)
    text = _read(from_stdin=token or argument == STDIN)
    person = session.person(text)
    session.store(text)
    roles = sorted(person.roles)

    def render() -> None:
        listed = ", ".join(roles) or "viewer"
        cli.screen.line(f"signed in as {person.name} (token {person.token_id}: {listed})")

    record = {
        "name": person.name,
        "token_id": person.token_id,
        "roles": [str(role) for role in roles],
    }
    cli.screen.answer(record, render)


def _read(*, from_stdin: bool) -> str:
    if from_stdin or not sys.stdin.isatty():
        text = sys.stdin.readline(MAX_CHARACTERS).strip()
    else:
        text = getpass.getpass("Token: ").strip()
    if not text:
        raise BadInput("no token; paste it, or pipe it to `podium login --token`")
    return text


logout_app = command_app()


@logout_app.command()
def logout(context: typer.Context) -> None:
    """Sign out of this project: your answers carry your operating-system user again.

    The token itself stays valid until `podium serve tokens revoke ID`.

    \b
    Example:
      podium logout
      podium logout --json
    """
    cli = CliContext(context.obj, lenient=True)
    was_in = cli.has_folder and Login(cli).forget()
    text = "signed out" if was_in else "not signed in"
    line = f"{text}; you answer as {os_user_name()}"
    cli.screen.answer({"signed_out": was_in}, lambda: cli.screen.line(line))


whoami_app = command_app()


@whoami_app.command()
def whoami(context: typer.Context) -> None:
    """Show whose name your approvals carry here, and how that is proved.

    \b
    Example:
      podium whoami
      podium whoami --json
    """
    cli = CliContext(context.obj, lenient=True)
    who, person = identity(cli)
    roles = sorted(str(role) for role in person.roles) if person else []
    label = cli.user if cli.names_user and cli.user != who.name else ""

    def render() -> None:
        cli.screen.line(f"{who.name} ({who.how})")
        if label:
            cli.screen.stderr_line(
                f"PODIUM_USER or `user` names {label!r}: it labels what you submit, and approves nothing"
            )

    record = {
        "name": who.name,
        "authentication": str(who.authentication),
        "account": who.account,
        "roles": roles,
        "label": label,
    }
    cli.screen.answer(record, render)
