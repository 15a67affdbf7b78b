"""`podium whoami`."""

from __future__ import annotations

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.login import identity

app = command_app()


@app.command()
def whoami(context: typer.Context) -> None:
    """Show whose name your approvals carry here, and how that is proved.

    \b
    Example:
      podium whoami
      podium whoami --json
    """
    door = Door(context.obj, lenient=True)
    who, person = identity(door)
    roles = sorted(str(role) for role in person.roles) if person else []
    label = door.user if door.names_user and door.user != who.name else ""

    def words() -> None:
        door.screen.line(f"{who.name} ({who.how})")
        if label:
            door.screen.aside(
                f"PODIUM_USER or `user` says {label!r}: that labels what you submit, and approves nothing"
            )

    record = {
        "name": who.name,
        "authentication": str(who.authentication),
        "account": who.account,
        "roles": roles,
        "label": label,
    }
    door.screen.answer(record, words)
