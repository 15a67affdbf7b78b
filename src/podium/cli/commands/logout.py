"""`podium logout`."""

from __future__ import annotations

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.login import Login
from podium.wiring.identity import os_user_name

app = command_app()


@app.command()
def logout(context: typer.Context) -> None:
    """Sign out of this project: your answers carry your operating-system user again.

    The token itself stays valid until `podium serve tokens revoke ID`.

    \b
    Example:
      podium logout
    """
    door = Door(context.obj, lenient=True)
    was_in = door.has_folder and Login(door).forget()
    text = "signed out" if was_in else "nobody was signed in"
    words = f"{text}; you answer as {os_user_name()}"
    door.screen.answer({"signed_out": was_in}, lambda: door.screen.line(words))
