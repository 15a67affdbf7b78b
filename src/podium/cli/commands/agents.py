"""`podium agents`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.agent_status import Standing, agent_status, agent_statuses, round_trip
from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import Door
from podium.cli.screen import error_record
from podium.core.errors import PodiumError
from podium.core.model import Json
from podium.core.turns import Reply
from podium.render.text import escaped_line

app = command_app()

MAX_ANSWER = 200


@app.callback(invoke_without_command=True)
def agents(context: typer.Context) -> None:
    """List agents: installed, logged in, and how their calls are gated. Without a command: `list`."""
    if context.invoked_subcommand is None:
        list_(context)


@app.command("list")
def list_(context: typer.Context) -> None:
    """List the agents of podium.yaml, and the known programs it does not name.

    \b
    Example:
      podium agents list
      podium agents list --json
    """
    door = Door(context.obj)
    found = door.run(agent_statuses)

    def words() -> None:
        headers = ("AGENT", "KIND", "INSTALLED", "LOGGED IN", "TOOL DOOR")
        door.screen.table(headers, [_row(each) for each in found])
        if not any(each.configured for each in found):
            door.screen.aside("podium.yaml names no agent yet; add one under `agents:`")
        door.screen.aside(
            "`podium agents check NAME` checks one; with `--ask` it must answer a question"
        )

    door.screen.answer({"agents": [_record(each) for each in found]}, words)


@app.command()
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="An agent of podium.yaml, or a kind.")],
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask it for one word. This spends a few tokens.")
    ] = False,
) -> None:
    """Check one agent: program, version, login, tool door. Exit 1 when something stands in its way.

    \b
    Example:
      podium agents check gemini
      podium agents check reviewer --ask
    """
    door = Door(context.obj)

    async def work(podium: Podium) -> tuple[Standing, Reply | PodiumError | None]:
        if ask:
            door.screen.aside(
                f"looking at {name!r} and asking it for one word; this may take a while"
            )
        found = await agent_status(podium, name)
        if not ask or found.troubles:
            return found, None
        try:
            return found, await round_trip(podium, name)
        except PodiumError as error:
            # What is known of it helps to see why it did not answer.
            return found, error

    found, answer = door.run(work)
    reply = answer if isinstance(answer, Reply) else None
    failure = answer if isinstance(answer, PodiumError) else None
    record: dict[str, Json] = {"agent": {**_record(found), "reply": _reply_record(reply)}}
    if failure is not None:
        record["error"] = error_record(failure, str(failure), failure.exit_code)
    door.screen.answer(record, lambda: _show(door, found, reply, ask and failure is None))
    if failure is not None and not door.screen.json:
        raise failure
    if failure is not None:
        door.screen.aside(f"podium: {failure}")
        raise typer.Exit(failure.exit_code)
    if not found.ready:
        raise typer.Exit(1)


def _show(door: Door, found: Standing, reply: Reply | None, asked: bool) -> None:
    rows = {
        "kind": found.kind,
        "installed": " ".join(filter(None, (found.installed, found.version))),
        "logged in": " ".join(filter(None, (found.logged_in, found.login and f"({found.login})"))),
        "tool door": found.door,
        "model": found.model or "its own choice",
    }
    if not found.configured:
        rows["configured"] = "no; add it under `agents:` in podium.yaml"
    if reply is not None:
        used = reply.usage
        rows["answered"] = escaped_line(reply.text.strip())[:MAX_ANSWER]
        rows["took"] = (
            f"{reply.seconds:.1f} s, {used.input_tokens} + {used.output_tokens} tokens, "
            f"${used.usd:.4f}{'' if used.complete else ' (not all is known)'}, {reply.model}"
        )
        rows |= {"warning": "; ".join(reply.warnings)} if reply.warnings else {}
    for label, words in rows.items():
        door.screen.line(f"{label:<10} {escaped_line(words)}")
    for label, lines in (("warning", found.warnings), ("trouble", found.troubles)):
        for line in lines:
            door.screen.line(f"{label:<10} {escaped_line(line)}")
    if asked and reply is None:
        door.screen.line(f"{'asked':<10} no: mend the trouble first")


def _row(found: Standing) -> tuple[str, ...]:
    name = found.name if found.configured else f"({found.name})"
    installed = found.version or found.installed
    return (escaped_line(name), found.kind, escaped_line(installed), found.logged_in, found.door)


def _record(found: Standing) -> dict[str, Json]:
    return {**found.model_dump(mode="json"), "ready": found.ready}


def _reply_record(reply: Reply | None) -> Json:
    if reply is None:
        return None
    kept = {"text", "usage", "model", "version", "seconds", "warnings"}
    return reply.model_dump(mode="json", include=kept)
