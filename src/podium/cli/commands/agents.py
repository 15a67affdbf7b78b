"""`podium agents`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.app.agent_status import Standing, agent_status, agent_statuses, ask_once
from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import error_record
from podium.core.errors import PodiumError
from podium.core.model import Json
from podium.core.turns import Reply
from podium.render.event import tokens_text
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
    cli = CliContext(context.obj)
    statuses = cli.run(agent_statuses)

    def render() -> None:
        headers = ("AGENT", "KIND", "INSTALLED", "LOGGED IN", "TOOL DOOR")
        cli.screen.table(headers, [_row(status) for status in statuses])
        if not any(status.configured for status in statuses):
            cli.screen.stderr_line("podium.yaml has no agents yet; add one under `agents:`")
        cli.screen.stderr_line(
            "check one with `podium agents check NAME`; `--ask` also sends it a question"
        )

    cli.screen.answer({"agents": [_record(status) for status in statuses]}, render)


@app.command()
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Agent in podium.yaml, or a kind.")],
    ask: Annotated[
        bool, typer.Option("--ask", help="Send it a one-word question; costs a few tokens.")
    ] = False,
) -> None:
    """Check one agent: program, version, login, tool door. Exits with 1 when it cannot be used.

    \b
    Example:
      podium agents check gemini
      podium agents check reviewer --ask
    """
    cli = CliContext(context.obj)

    async def work(podium: Podium) -> tuple[Standing, Reply | PodiumError | None]:
        if ask:
            cli.screen.stderr_line(
                f"checking {name!r} and asking it for one word; this may take a while"
            )
        status = await agent_status(podium, name)
        if not ask or status.troubles:
            return status, None
        try:
            return status, await ask_once(podium, name)
        except PodiumError as error:
            # What is known of it helps to see why it did not answer.
            return status, error

    status, answer = cli.run(work)
    reply = answer if isinstance(answer, Reply) else None
    failure = answer if isinstance(answer, PodiumError) else None
    record: dict[str, Json] = {"agent": {**_record(status), "reply": _reply_record(reply)}}
    if failure is not None:
        record["error"] = error_record(failure, str(failure), failure.exit_code)
    cli.screen.answer(record, lambda: _show(cli, status, reply, ask and failure is None))
    if failure is not None and not cli.screen.json:
        raise failure
    if failure is not None:
        cli.screen.stderr_line(f"podium: {failure}")
        raise typer.Exit(failure.exit_code)
    if not status.ready:
        raise typer.Exit(1)


def _show(cli: CliContext, status: Standing, reply: Reply | None, asked: bool) -> None:
    rows = {
        "kind": status.kind,
        "installed": " ".join(filter(None, (status.installed, status.version))),
        "logged in": " ".join(
            filter(None, (status.logged_in, status.login and f"({status.login})"))
        ),
        "tool door": status.door,
        "model": status.model or "its default",
    }
    if not status.configured:
        rows["configured"] = "no; add it under `agents:` in podium.yaml"
    if reply is not None:
        used = reply.usage
        rows["answered"] = escaped_line(reply.text.strip())[:MAX_ANSWER]
        rows["took"] = (
            f"{reply.seconds:.1f} s, {tokens_text(used.input_tokens, used.output_tokens)}, "
            f"${used.usd:.4f}{'' if used.complete else ' (incomplete)'}, {reply.model}"
        )
        rows |= {"warning": "; ".join(reply.warnings)} if reply.warnings else {}
    for label, value in rows.items():
        cli.screen.line(f"{label:<10} {escaped_line(value)}")
    for label, lines in (("warning", status.warnings), ("problem", status.troubles)):
        for line in lines:
            cli.screen.line(f"{label:<10} {escaped_line(line)}")
    if asked and reply is None:
        cli.screen.line(f"{'asked':<10} no: fix the problem first")


def _row(status: Standing) -> tuple[str, ...]:
    name = status.name if status.configured else f"({status.name})"
    installed = status.version or status.installed
    return (escaped_line(name), status.kind, escaped_line(installed), status.logged_in, status.door)


def _record(status: Standing) -> dict[str, Json]:
    return {**status.model_dump(mode="json"), "ready": status.ready}


def _reply_record(reply: Reply | None) -> Json:
    if reply is None:
        return None
    fields = {"text", "usage", "model", "version", "seconds", "warnings"}
    return reply.model_dump(mode="json", include=fields)
