"""`podium sense`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.rooting import take_root
from podium.cli.sense_looping import keep_ticking
from podium.cli.sense_set_up import add_set_up
from podium.cli.sense_ticking import tick_once
from podium.cli.sense_trust import trust_app
from podium.domain.errors import BadInput
from podium.domain.terms import MODES, Mode
from podium.wiring.sense_variables import MODE_VARIABLE, is_scheduled

app = command_app()
add_set_up(app)
app.add_typer(trust_app, name="trust")


@app.callback(invoke_without_command=True)
def sense(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="One tick, which always plans.")] = False,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="How far it may go, instead of what is set.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="The root; else the project's folder."),
    ] = None,
    if_changed: Annotated[
        bool, typer.Option("--if-changed", help="With --once: plan only if something changed.")
    ] = False,
) -> None:
    """Read the system's state, plan, and let work orders go as far as the mode lets them.

    A tick looks at the sources, asks the planner if anything changed, and makes candidates of its
    plan. Without --once that happens now and again and again until Ctrl-C; one loop has a root, a
    second one leaves with 7. GMX_ORCH_MODE lowers the mode and never raises it.

    sensing only tells; dry-run writes candidates to review; supervised delivers what somebody
    approved; autonomous also delivers unasked what `podium sense trust` grants.

    One tick leaves with 0 when there is a plan, an empty one in place of an absent planner, or
    nothing to plan for, and with 1 when the planner failed.

    \b
    Example:
      podium sense scaffold && podium sense --once
      podium sense --once --mode dry-run --json
      podium sense --mode supervised
    """
    options = context.obj
    take_root(context, root)
    if context.invoked_subcommand is not None:
        if once or if_changed or mode:
            raise BadInput(
                f"--once, --if-changed and --mode are for a tick; say them behind "
                f"`{context.invoked_subcommand}` if that takes them"
            )
        return
    if if_changed and not once:
        raise BadInput("the loop plans only if something changed anyway; add --once")
    options.mode = mode or ""
    door = Door(options)
    _tell_odd_mode(door)
    if once:
        tick_once(door, manual=not (if_changed or is_scheduled(os.environ)))
    else:
        keep_ticking(door)


def _tell_odd_mode(door: Door) -> None:
    given = os.environ.get(MODE_VARIABLE, "").strip()
    if given and given not in MODES:
        door.screen.aside(
            f"podium: {MODE_VARIABLE}={given!r} is no mode, so the mode is {MODES[0]}; modes: {', '.join(MODES)}"
        )
