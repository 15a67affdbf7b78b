"""`podium undo`."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.door import Door
from podium.cli.operator_asking import Started, put, show
from podium.domain.operating import OperatorAnswer, OperatorJob, OperatorMode
from podium.flows.operator import Operator
from podium.usecases import find_undoable
from podium.wiring import Podium

app = command_app()


@app.command()
def undo(
    context: typer.Context,
    receipt: Annotated[
        str, typer.Argument(metavar="RUN#NUMBER", help="The receipt of what is to be taken back.")
    ],
    mode: Annotated[
        str, typer.Option("--mode", "-M", metavar="MODE", help="plan only shows what it would do.")
    ] = OperatorMode.EXECUTE.value,
    approve: Annotated[
        bool, typer.Option("--approve", help="Say yes to the plan that comes of it, this once.")
    ] = False,
) -> None:
    """Take back what a receipt proves, by the inverse that its tool declared. Gated like any other plan.

    \b
    Example:
      podium undo 9d1f5a6b#1 -M plan
      podium undo 9d1f5a6b#1 --approve
    """
    door = Door(context.obj)
    door.must_have_state("run", receipt.partition("#")[0])

    async def pack_of(podium: Podium) -> str:
        store = await podium.store()
        found = await find_undoable(store, receipt)
        run = await store.read(lambda view: view.run(found.run_id))
        return OperatorJob.model_validate(run.input).plan.pack if run else ""

    async def process(podium: Podium, operator: Operator, started: Started) -> OperatorAnswer:
        found = await find_undoable(await podium.store(), receipt)
        return await operator.undo(found, mode, approve, started=started)

    words = f"undo {receipt}"
    answer = put(door, words, mode, process, pack=door.run(pack_of))
    show(door, answer)
    raise typer.Exit(answer.exit_code)
