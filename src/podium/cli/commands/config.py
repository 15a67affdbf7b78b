"""`podium config`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import Screen
from podium.domain.gating import canonical_json
from podium.domain.model import Json
from podium.wiring import Configuration, Podium
from podium.wiring.databases import Databases

# Not a name of `podium.wiring`: it brings the gate along, which quick commands do without.
from podium.wiring.policy import policies_record, policy_listing

app = command_app(group=True)


@app.callback()
def config() -> None:
    """Show the settings in force, and where each comes from."""


@app.command()
def show(
    context: typer.Context,
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value came from.")
    ] = False,
) -> None:
    """Show every setting in force.

    A flag wins over PODIUM_*, that over podium.yaml, that over your own file, that over the
    default; of what guards, the stricter holds.

    \b
    Example:
      podium config show --origin
    """
    door = Door(context.obj)
    configuration = door.configuration
    database, origin_of_it = _database(configuration)
    record: dict[str, Json] = {
        **configuration.record(),
        "policy": policies_record(configuration),
        "database": database,
    }
    listing = [
        *configuration.listing(),
        *policy_listing(configuration),
        ("database", database, origin_of_it),
    ]
    if origin:
        record = {
            "values": [
                {"key": key, "value": value, "origin": where} for key, value, where in listing
            ]
        }

    def words() -> None:
        for key, value, where in listing:
            text = value if isinstance(value, str) else canonical_json(value)
            door.screen.line(f"{key}: {text}" + (f"    # {where}" if origin else ""))

    door.screen.answer(record, words)


@app.command()
def schema(context: typer.Context) -> None:
    """Print the JSON Schema of podium.yaml, for editors.

    \b
    Example:
      podium config schema > podium.schema.json
    """
    import json

    from podium.wiring.settings_schema import settings_schema

    screen = Screen(json=context.obj.json)
    document = settings_schema()
    screen.answer(document, lambda: screen.line(json.dumps(document, indent=2)))


def _database(configuration: Configuration) -> tuple[str, str]:
    """Where the record is, without a password, and what says so."""
    podium = Podium(configuration, os.environ)
    origin = "PODIUM_DATABASE_URL" if podium.database_url else "default"
    return Databases(podium).in_use_shown, origin
