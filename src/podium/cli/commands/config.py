"""Commands `podium config` and `trust`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.databases import Databases
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.config.configuration import Configuration, project_steering
from podium.config.policy_layers import policies_record, policy_listing
from podium.config.trust import TrustBook
from podium.core.decisions import canonical_json
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.job import load_parts
from podium.core.model import Json
from podium.render.text import escaped_line

app = command_app(group=True)


@app.callback()
def config() -> None:
    """Show the settings in force and where each comes from."""


@app.command()
def show(
    context: typer.Context,
    origin: Annotated[
        bool, typer.Option("--origin", help="Show the origin of each value.")
    ] = False,
) -> None:
    """Show every setting in force.

    Precedence: flag, PODIUM_*, podium.yaml, your own file,
    default; for safety settings, the stricter value holds.

    \b
    Example:
      podium config show --origin
      podium config show --json
    """
    cli = CliContext(context.obj)
    configuration = cli.configuration
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

    def render() -> None:
        for key, value, where in listing:
            text = value if isinstance(value, str) else canonical_json(value)
            cli.screen.line(f"{key}: {text}" + (f"    # {where}" if origin else ""))

    cli.screen.answer(record, render)


@app.command()
def schema(context: typer.Context) -> None:
    """Print the JSON Schema of podium.yaml, for editors.

    \b
    Example:
      podium config schema > podium.schema.json
      podium --project ~/shop config schema
    """
    import json

    from podium.config.schema import settings_schema

    screen = Screen(json=context.obj.json)
    document = settings_schema()
    screen.answer(document, lambda: screen.line(json.dumps(document, indent=2)))


def _database(configuration: Configuration) -> tuple[str, str]:
    """Return the database in use, without a password, and the origin of that setting."""
    podium = Podium(configuration, os.environ)
    origin = "PODIUM_DATABASE_URL" if podium.database_url else "default"
    return Databases(podium).in_use_name, origin


trust_app = command_app()


@trust_app.command()
def trust(
    context: typer.Context,
    show: Annotated[bool, typer.Option("--show", help="Only show the status.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Stop trusting it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Trust the commands, variables, addresses, options, hosts, set-up of workspaces, sense sources, notices and chats in this project's podium.yaml as they are now. Any edit revokes the trust.

    They are shown first, and you are asked to confirm. Without a terminal, or with --json, --yes is required.

    \b
    Example:
      podium trust --show
      podium trust
    """
    cli = CliContext(context.obj)
    configuration = cli.configuration
    file = configuration.folders.project_file
    if not configuration.project_digest:
        raise NotPossibleNow(f"no {str(file)!r} to trust; create one with `podium init`")
    book = TrustBook(configuration.folders.user_state)
    asks = not (show or forget or yes)
    if asks and (cli.screen.json or not _somebody_is_there()):
        raise BadInput(
            f"not a terminal; pass --yes to trust {str(file)!r}, or review it with `podium trust --show`"
        )
    if asks:
        _show_steering(cli.screen, configuration)
    if forget:
        book.forget(file)
    elif not show and (not asks or typer.confirm(f"trust {file} as it is now?", err=True)):
        book.trust(file, configuration.project_digest)
    trusted = configuration.project_is_trusted()

    def render() -> None:
        if not asks:
            _show_steering(cli.screen, configuration)
        cli.screen.line(f"{file}: {'trusted' if trusted else 'not trusted'}")

    cli.screen.answer(_record(configuration, trusted), render)
    if asks and not trusted:
        raise typer.Exit(1)


def _somebody_is_there() -> bool:
    return typer.get_text_stream("stdin").isatty()


def _record(configuration: Configuration, trusted: bool) -> dict[str, Json]:
    commands, variables = configuration.project_commands(), configuration.project_variables()
    return {
        "file": str(configuration.folders.project_file),
        "digest": configuration.project_digest,
        "trusted": trusted,
        "commands": {name: list(command) for name, command in commands.items()},
        "variables": {name: list(lines) for name, lines in variables.items()},
        "addresses": configuration.project_addresses(),
        "options": configuration.project_options(),
        "hosts": list(configuration.project_hosts()),
        "workspaces": configuration.project_set_up(),
        "sources": {name: source for _, name, source in _sources(configuration)},
        **project_steering(configuration),
    }


def _show_steering(screen: Screen, configuration: Configuration) -> None:
    """Print everything in podium.yaml that needs trust."""
    for name, command in configuration.project_commands().items():
        screen.line(f"agent {escaped_line(name)}: {escaped_line(shlex.join(command))}")
    for name, lines in configuration.project_variables().items():
        screen.line(f"agent {escaped_line(name)}: {escaped_line(shlex.join(lines))}")
    for name, address in configuration.project_addresses().items():
        screen.line(f"agent {escaped_line(name)}: model at {escaped_line(address)}")
    for name, options in configuration.project_options().items():
        screen.line(f"agent {escaped_line(name)}: options {escaped_line(canonical_json(options))}")
    for job, name, source in _sources(configuration):
        screen.line(f"{job} source {escaped_line(name)}: {escaped_line(source)}")
    for key, wished in project_steering(configuration).items():
        screen.line(f"{key}: {escaped_line(canonical_json(wished))}")
    if hosts := configuration.project_hosts():
        screen.line(f"network: processes of agents may reach {escaped_line(', '.join(hosts))}")
    for key, value in configuration.project_set_up().items():
        for line in value if isinstance(value, list) else [value]:
            text = line if isinstance(line, str) else canonical_json(line)
            screen.line(f"workspaces: {escaped_line(key)}: {escaped_line(text)}")


def _sources(configuration: Configuration) -> Iterator[tuple[str, str, str]]:
    """Job, name, and command or address of every source that the project's file brings."""
    for job, sources_of in load_parts("steering"):
        for name, source in sources_of(configuration).items():
            yield job.name, name, source
