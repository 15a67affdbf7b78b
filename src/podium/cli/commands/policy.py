"""`podium policy`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.screen import Screen
from podium.cli.untrusted import shown_line
from podium.domain.errors import BadInput
from podium.domain.gating import Decision, Effect
from podium.domain.model import Json
from podium.usecases import check_policy
from podium.wiring import ClosedDoor, Podium

app = command_app(group=True)

EXIT_CODES = {Effect.ALLOW: 0, Effect.ASK: 3, Effect.DENY: 4}


@app.callback()
def policy() -> None:
    """Ask the gate what it would say."""


@app.command()
def check(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", show_default=False)
    ] = None,
    tool: Annotated[str | None, typer.Option("--tool", help="Judge a call of this tool.")] = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="The tool's arguments.")
    ] = None,
) -> None:
    """Print what the gate says of a command or a tool call, by which rule, and why.

    Several words are one program with its arguments; a single one is a shell line. Leaves with 0
    for allow, 3 for ask, 4 for deny.

    \b
    Example:
      podium policy check -- git checkout main
      podium policy check --tool write_file --args '{"path": "a.txt", "content": "x"}'
    """
    door = Door(context.obj)
    name, arguments = _wish(command or [], tool, args)

    async def work(podium: Podium) -> Decision:
        return check_policy(
            podium.gate,
            podium.toolbox_behind(ClosedDoor("only looking")),
            name,
            arguments,
            mode=podium.settings.mode,
            root=str(podium.folders.project),
            now=podium.clock.now(),
        )

    decision = door.run(work)
    door.screen.answer(_record(decision), lambda: _words(door.screen, decision))
    raise typer.Exit(EXIT_CODES[decision.effect])


def _wish(command: list[str], tool: str | None, args: str | None) -> tuple[str, dict[str, Json]]:
    if bool(command) == (tool is not None):
        raise typer.BadParameter("give either `-- COMMAND…` or `--tool NAME --args JSON`")
    if tool is None:
        if args is not None:
            raise typer.BadParameter("--args belongs to --tool")
        if not "".join(command).strip():
            raise typer.BadParameter("the command is empty; write it behind `--`")
        return "run_command", {"command": command if len(command) > 1 else command[0]}
    try:
        arguments = json.loads(args or "{}")
    except ValueError as error:
        raise BadInput(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise BadInput("--args must be a JSON object of argument names and values")
    return tool, arguments


def _record(decision: Decision) -> dict[str, Json]:
    return {
        "decision": decision.effect.value,
        "rule": decision.rule,
        "tier": str(decision.tier),
        "reason": decision.reason,
        "arithmetic": [
            {"tier": str(term.tier), "because": term.because} for term in decision.arithmetic
        ],
        "approvers": list(decision.approvers),
    }


def _words(screen: Screen, decision: Decision) -> None:
    screen.facts(
        [
            ("decision", decision.effect.value),
            ("rule", decision.rule),
            ("tier", str(decision.tier)),
            ("why", shown_line(decision.reason)),
            ("approvers", ", then ".join(decision.approvers)),
        ]
    )
    for term in decision.arithmetic:
        screen.line(f"  {term.tier}: {shown_line(term.because)}")
