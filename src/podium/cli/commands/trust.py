"""`podium trust`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.untrusted import shown_line
from podium.domain.errors import NotPossibleNow
from podium.domain.gating import canonical_json
from podium.domain.model import Json
from podium.wiring import TrustBook

app = command_app()


@app.command()
def trust(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--show", help="Only say how things stand.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Trust it no more.")] = False,
) -> None:
    """Trust the commands, variables, addresses, options, hosts and set-up of workspaces in this project's podium.yaml as they are now. Any edit ends the trust.

    \b
    Example:
      podium trust --show
      podium trust
    """
    door = Door(context.obj)
    configuration = door.configuration
    file = configuration.folders.project_file
    if not configuration.project_digest:
        raise NotPossibleNow(f"there is no {str(file)!r} to trust; `podium init` makes one")
    book = TrustBook(configuration.folders.user_state)
    if forget:
        book.forget(file)
    elif not show:
        book.trust(file, configuration.project_digest)
    trusted = configuration.project_is_trusted()
    commands, variables = configuration.project_commands(), configuration.project_variables()
    addresses, options = configuration.project_addresses(), configuration.project_options()
    hosts, set_up = configuration.project_hosts(), configuration.project_set_up()
    record: dict[str, Json] = {
        "file": str(file),
        "digest": configuration.project_digest,
        "trusted": trusted,
        "commands": {name: list(command) for name, command in commands.items()},
        "variables": {name: list(lines) for name, lines in variables.items()},
        "addresses": addresses,
        "options": options,
        "hosts": list(hosts),
        "workspaces": set_up,
    }

    def words() -> None:
        for name, command in commands.items():
            door.screen.line(f"agent {shown_line(name)}: {shown_line(shlex.join(command))}")
        for name, lines in variables.items():
            door.screen.line(f"agent {shown_line(name)}: {shown_line(shlex.join(lines))}")
        for name, address in addresses.items():
            door.screen.line(f"agent {shown_line(name)}: model at {shown_line(address)}")
        for name, given in options.items():
            words = shown_line(canonical_json(given))
            door.screen.line(f"agent {shown_line(name)}: options {words}")
        if hosts:
            door.screen.line(f"network: what agents start may reach {shown_line(', '.join(hosts))}")
        if set_up:
            door.screen.line(f"workspaces: {shown_line(canonical_json(set_up))}")
        door.screen.line(f"{file}: {'trusted' if trusted else 'not trusted'}")

    door.screen.answer(record, words)
