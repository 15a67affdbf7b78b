"""`podium policy`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.confinement import held_in_workspaces
from podium.app.dry_run import ClosedDoor, NoConfinement, NoLauncher
from podium.app.policy_trial import (
    Tried,
    check_policy,
    policy_cases,
    read_yaml,
    shipped_cases,
    try_policy,
)
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.decisions import Decision, Effect
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.core.processes import FolderConfinement
from podium.ports import Toolbox
from podium.render.text import escaped_line

app = command_app(group=True)

EXIT_CODES = {Effect.ALLOW: 0, Effect.ASK: 3, Effect.DENY: 4}


@app.callback()
def policy() -> None:
    """Show what the gate decides about a command, and why."""


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
    confined: Annotated[
        bool | None,
        typer.Option(
            "--confined/--unconfined",
            help="Judge with or without the kernel's confinement, instead of as configured.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show what the gate decides about a command or a tool call, by which rule, and why.

    It is judged as an agent's call in a workspace, under the configured confinement; the answer
    shows which. Several words are a program with its arguments; a single one is a shell line.
    Exits with 0 for allow, 3 for ask, 4 for deny.

    \b
    Example:
      podium policy check -- git checkout main
      podium policy check --tool write_file --args '{"path": "a.txt", "content": "x"}'
    """
    cli = CliContext(context.obj)
    name, arguments = _requested_call(command or [], tool, args)

    async def work(podium: Podium) -> tuple[Decision, FolderConfinement | None]:
        held = _held(podium, confined)
        return check_policy(
            podium.gate,
            _toolbox(podium),
            name,
            arguments,
            mode=podium.settings.mode,
            root=str(podium.folders.project),
            now=podium.clock.now(),
            confined=held is not None,
            network=held.network if held else "open",
            hosts=held.hosts if held else (),
        ), held

    decision, held = cli.run(work)
    record = {**_record(decision), **_confinement(held)}
    cli.screen.answer(record, lambda: _print_decision(cli.screen, decision, held))
    raise typer.Exit(EXIT_CODES[decision.effect])


def _toolbox(podium: Podium) -> Toolbox:
    """Return the tools for inspection: every call is refused, so workspaces and the sandbox are not loaded."""
    return podium.toolbox_behind(
        ClosedDoor("this is only a check"),
        launcher=NoLauncher(),
        confinement_provider=NoConfinement(),
    )


def _held(podium: Podium, confined: bool | None) -> FolderConfinement | None:
    """Return the confinement of commands: as configured, unless the person asks for another."""
    if confined is False:
        return None
    sandbox = podium.configuration.sandbox
    return held_in_workspaces(sandbox) or (
        FolderConfinement(network="model-only") if confined else None
    )


def _confinement(held: FolderConfinement | None) -> dict[str, Json]:
    if held is None:
        return {"confinement": "none", "network": "open", "hosts": []}
    return {"confinement": "kernel", "network": held.network, "hosts": list(held.hosts)}


def _confinement_text(held: FolderConfinement | None) -> str:
    if held is None:
        return "no: only the command line is judged, and nothing confines what it does"
    hosts = f" ({', '.join(held.hosts)})" if held.hosts else ""
    return f"by the kernel, as in a workspace; network {held.network}{hosts}"


@app.command("test")
def try_cases(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A YAML list of cases.", show_default=False),
    ] = None,
) -> None:
    """Test the gate with a list of commands and expected decisions.

    FILE is a list of cases, each with `command` and `decision` (allow, ask or deny), and optionally
    `rule`, `confined`, `network`, `hosts`, `mode` and `why`. Without FILE the lists shipped with
    Podium are used. Exits with 0 only when every case holds, otherwise with 1. Nothing is started.

    \b
    Example:
      podium policy test cases.yaml
      podium policy test
    """
    cli = CliContext(context.obj)
    lists = [(str(file), read_yaml(file))] if file is not None else [*shipped_cases()]
    cases = [case for name, data in lists for case in policy_cases(data, name)]

    async def work(podium: Podium) -> list[Tried]:
        return [
            *try_policy(
                podium.gate,
                _toolbox(podium),
                cases,
                mode=podium.settings.mode,
                root=str(podium.folders.project),
                now=podium.clock.now(),
            )
        ]

    tried = cli.run(work)
    wrong = [one for one in tried if not one.holds]
    cli.screen.answer(_outcome(tried, wrong), lambda: _print_results(cli.screen, tried, wrong))
    raise typer.Exit(1 if wrong else 0)


def _outcome(tried: list[Tried], wrong: list[Tried]) -> dict[str, Json]:
    return {
        "cases": len(tried),
        "held": len(tried) - len(wrong),
        "wrong": [
            {
                "command": one.case.command,
                "confined": one.case.confined,
                "expected": one.case.decision.value,
                "decision": one.decision.value,
                "expected_rule": one.case.rule,
                "rule": one.rule,
                "reason": one.reason,
                "why": one.case.why,
            }
            for one in wrong
        ],
        "wrongly_stopped_share": _stopped_share(tried),
    }


def _stopped_share(tried: list[Tried]) -> float:
    """Return the share of allowed cases that were stopped."""
    passing = [one for one in tried if one.case.decision is Effect.ALLOW]
    stopped = sum(one.decision is not Effect.ALLOW for one in passing)
    return round(stopped / len(passing), 4) if passing else 0.0


def _print_results(screen: Screen, tried: list[Tried], wrong: list[Tried]) -> None:
    for one in wrong:
        command = one.case.command
        text = command if isinstance(command, str) else shlex.join(command)
        expected = one.case.decision.value + (f" by {one.case.rule}" if one.case.rule else "")
        screen.line(
            f"expected {expected}, got {one.decision.value} by {one.rule}: {escaped_line(text)}"
        )
        screen.line(f"  {escaped_line(one.reason)}")
        if one.case.why:
            screen.line(f"  why: {escaped_line(one.case.why)}")
    screen.line(f"{len(tried) - len(wrong)} of {len(tried)} cases hold")
    if any(one.case.decision is Effect.ALLOW for one in tried):
        screen.line(f"wrongly stopped: {_stopped_share(tried):.2%} of allowed cases")


def _requested_call(
    command: list[str], tool: str | None, args: str | None
) -> tuple[str, dict[str, Json]]:
    if bool(command) == (tool is not None):
        raise typer.BadParameter("pass either `-- COMMAND…` or `--tool NAME --args JSON`")
    if tool is None:
        if args is not None:
            raise typer.BadParameter("--args requires --tool")
        if not "".join(command).strip():
            raise typer.BadParameter("the command is empty; write it after `--`")
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


def _print_decision(screen: Screen, decision: Decision, held: FolderConfinement | None) -> None:
    screen.facts(
        [
            ("decision", decision.effect.value),
            ("rule", decision.rule),
            ("tier", str(decision.tier)),
            ("why", escaped_line(decision.reason)),
            ("confined", _confinement_text(held)),
            ("approvers", ", then ".join(decision.approvers)),
        ]
    )
    for term in decision.arithmetic:
        screen.line(f"  {term.tier}: {escaped_line(term.because)}")
