"""`podium ask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.jobs.operator.message_context import Typed
from podium.jobs.operator.models import OperatorMode

app = command_app()


@app.command()
def ask(
    context: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[MESSAGE]", help="Request in plain words; - reads stdin.", show_default=False
        ),
    ] = None,
    message: Annotated[
        str, typer.Option("--message", "-m", metavar="TEXT", help="Same as MESSAGE.")
    ] = "",
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            "-M",
            metavar="MODE",
            help="How far to go: analyze, plan, enqueue, enqueue_and_wait or execute. Default: analyze; "
            "questions about Podium itself are answered at once.",
        ),
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the resulting plan.")] = False,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--context", metavar="NAME=VALUE", help="Value to use as context; repeatable."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--context-file", metavar="FILE", help="JSON object with context values."),
    ] = None,
    pack: Annotated[
        list[str] | None,
        typer.Option(
            "--pack", metavar="NAME", help="Pack of tools, by name or folder; repeatable."
        ),
    ] = None,
    classifier: Annotated[
        str,
        typer.Option(
            "--classifier",
            metavar="NAME",
            help="What reads the message: embedded, model or an agent of podium.yaml.",
        ),
    ] = "",
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            help="Conversation to continue or to start: `text him`, `the second one`, `no, Thursday`.",
        ),
    ] = "",
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Start an interactive prompt.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the --json output.")
    ] = False,
) -> None:
    """Turn a request in plain words into approved tool calls, each with a receipt.

    Every answer has five blocks: [INTENT], [PLAN] or [RESULT], [TOOL IMPACT], [RISKS / GATES] and
    [NEXT ACTIONS]. Nothing is done in the modes analyze and plan. Without a mode, questions about Podium
    itself are answered and everything else is analyzed. From tier T2 on, a plan waits until people
    approve that exact plan. Exits with 0 when done, 3 when an approval or an answer is needed, 4 when
    refused.

    \b
    Example:
      podium ask "what is waiting for me"
      podium ask "fix the failing discount test"
      podium ask -m "cancel the last run" -M execute --approve
      podium ask -m "new lead: Sarah 0400123456 in Clayton" -M plan --pack roofing
      podium ask -M execute --context run_id=9d1f5a6b - < message.txt
      podium ask "text her that we are on the way" --session office
      podium ask --interactive
    """
    cli = CliContext(context.obj)
    if schema:
        from podium.jobs.operator.run_view import answer_schema

        cli.screen.record(answer_schema())
        return
    chosen = OperatorMode.ANALYZE.value if mode is None else mode
    typed = Typed(
        chosen,
        tuple(pairs or ()),
        file,
        tuple(pack or ()),
        classifier,
        mode_explicit=mode is not None,
        session=session,
    )
    if interactive:
        from podium.jobs.operator.commands.ask_prompt import converse

        converse(cli, typed, message or text or "")
        return
    from podium.jobs.operator.commands.ask_message import asked
    from podium.jobs.operator.run_view import show

    answer = asked(cli, typed, text or "", message, approve=approve)
    show(cli, answer)
    raise typer.Exit(answer.exit_code)
