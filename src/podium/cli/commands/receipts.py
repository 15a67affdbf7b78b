"""`podium receipts`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.receipts import Verdict, follow_receipts, list_receipts
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.core.decisions import Receipt
from podium.core.errors import NotPossibleNow
from podium.core.ids import short_id
from podium.render.text import counted, local_time

app = command_app(group=True)

RunArgument = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Only receipts of this run.", show_default=False),
]


@app.callback()
def receipts() -> None:
    """List, verify or follow receipts: the sealed proof of every performed call."""


@app.command("list")
def list_(context: typer.Context, run: RunArgument = None) -> None:
    """List receipts.

    \b
    Example:
      podium receipts list 9d1f5a6b
      podium receipts list --json
    """
    cli = CliContext(context.obj, lenient=True)
    listed: list[Receipt] = []
    if run is not None:
        cli.must_have_state("run", run)
    if cli.has_state:

        async def work(podium: Podium) -> list[Receipt]:
            return await list_receipts(await podium.store(), run)

        listed = cli.run(work)

    def render() -> None:
        if not listed:
            cli.screen.stderr_line("no receipts")
            return
        headers = ("RUN", "NO", "TOOL", "STATUS", "TIER", "APPROVED BY", "SETTLED")
        cli.screen.table(headers, [_row(receipt) for receipt in listed])

    cli.screen.answer({"receipts": [one.model_dump(mode="json") for one in listed]}, render)


@app.command()
def verify(context: typer.Context, run: RunArgument = None) -> None:
    """Verify that no receipt was edited, removed, reordered or cut off. Exits with 1 otherwise.

    \b
    Example:
      podium receipts verify
      podium receipts verify 9d1f5a6b
    """
    cli = CliContext(context.obj)
    if run is not None:
        cli.must_have_state("run", run)

    async def work(podium: Podium) -> Verdict:
        from podium.app.receipts import proven

        return await proven(podium, run)

    # Without a state folder nothing was ever sealed, and looking must not make one.
    looked = cli.has_folder or cli.has_state
    verdict = cli.run(work) if looked else Verdict(runs=0, receipts=0)

    def render() -> None:
        for problem in verdict.faults:
            number = "" if problem.number is None else f" receipt {problem.number}"
            cli.screen.line(f"{problem.kind}: run {problem.run_id}{number}: {problem.problem}")
        state = "sound" if verdict.sound else counted(len(verdict.faults), "fault")
        cli.screen.line(
            f"{counted(verdict.receipts, 'receipt')} of {counted(verdict.runs, 'run')}: {state}"
        )

    cli.screen.answer(verdict.record(), render)
    raise typer.Exit(0 if verdict.sound else 1)


@app.command()
def follow(context: typer.Context, run: RunArgument = None) -> None:
    """Print every new receipt until interrupted; with --json one object per receipt.

    \b
    Example:
      podium receipts follow --json
      podium receipts follow 9d1f5a6b
    """
    cli = CliContext(context.obj)
    if run is not None:
        cli.must_have_state("run", run)
    if not cli.has_state:
        raise NotPossibleNow("no runs yet; start a run first, then follow")

    async def work(podium: Podium) -> None:
        receipts = follow_receipts(await podium.store(), run)
        async with aclosing(receipts):  # type: ignore[type-var]  # it is an async generator
            async for receipt in receipts:
                if cli.screen.json:
                    cli.screen.record(receipt.model_dump(mode="json"))
                else:
                    cli.screen.line("  ".join(_row(receipt)))
                if cli.screen.reader_gone:
                    return

    cli.run(work)


def _row(receipt: Receipt) -> tuple[str, ...]:
    return (
        short_id(receipt.run_id),
        str(receipt.number),
        receipt.tool,
        receipt.status,
        str(receipt.tier),
        ", ".join(receipt.approved_by),
        local_time(receipt.settled_at),
    )
