"""Command group `podium duet`; each subcommand is imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import typer

from podium.cli.app import command_app

_MODULES = {
    "up": "lifecycle",
    "send": "tasks",
    "status": "status",
    "attach": "lifecycle",
    "take": "terminals",
    "give": "terminals",
    "abort": "status",
    "retry": "tasks",
    "nudge": "status",
    "log": "status",
    "down": "lifecycle",
    "serve": "terminals",
    "keys": "terminals",
    "screen": "terminals",
    "watch": "terminals",
    "queue": "tasks",
}
"""Command → the module of its function, which has the same name; `queue` is a group of its own."""


def _load(name: str) -> Any:
    module = import_module(f"podium.jobs.duet.commands.{_MODULES[name]}")
    if name == "queue":
        return typer.main.get_command(module.app)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    function: Callable[..., None] = getattr(module, name)
    alone.command()(function)
    return typer.main.get_command(alone)


app = command_app(group=True, later={name: partial(_load, name) for name in _MODULES})


@app.callback()
def duet() -> None:
    """Two live terminal AIs, a planner and an executer, hand work to each other.

    \b
    Example:
      podium duet up --grant
      podium duet send "Read README.md, then write and run a matching script"
      podium duet attach -r
      podium duet down
      podium duet down --pair main --force
    """
