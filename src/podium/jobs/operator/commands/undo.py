"""`podium undo`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.receipts import find_undoable
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.jobs.operator.commands.ask_message import answer_or_error, put
from podium.jobs.operator.composition import OperatorSetup, build_operator, pack_of_receipt
from podium.jobs.operator.message_context import Typed
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.run_view import Started, show

app = command_app()


@app.command()
def undo(
    context: typer.Context,
    receipt: Annotated[
        str, typer.Argument(metavar="RUN#NUMBER", help="Receipt of the call to undo.")
    ],
    mode: Annotated[
        str,
        typer.Option(
            "--mode", "-M", metavar="MODE", help="plan shows what would be done, without doing it."
        ),
    ] = OperatorMode.EXECUTE.value,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the resulting plan.")] = False,
) -> None:
    """Undo the call of a receipt, with the inverse that its tool declares. Gated like any other plan.

    \b
    Example:
      podium undo 9d1f5a6b#1 -M plan
      podium undo 9d1f5a6b#1 --approve
    """
    cli, typed = CliContext(context.obj), Typed(mode)
    answer = answer_or_error(
        cli, f"undo {receipt}", typed, lambda: _taken_back(cli, typed, receipt, approve)
    )
    show(cli, answer)
    raise typer.Exit(answer.exit_code)


def _taken_back(cli: CliContext, typed: Typed, receipt: str, approve: bool) -> OperatorAnswer:
    cli.must_have_state("run", receipt.partition("#")[0])

    async def pack_of(podium: Podium) -> str:
        return await pack_of_receipt(podium, receipt)

    async def process(podium: Podium, setup: OperatorSetup, started: Started) -> OperatorAnswer:
        operator = await build_operator(podium, setup)
        undoable = await find_undoable(await podium.store(), receipt)
        return await operator.undo(undoable, typed.mode, approve, started=started)

    return put(cli, replace(typed, packs=(cli.run(pack_of),)), process)
