"""Commands `podium cancel`, `resume`, `retry` and `resolve`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.app.id_lookup import find_call_key
from podium.app.run_continuation import resumable
from podium.app.run_control import cancel as request_cancel
from podium.app.run_control import resolve_call, see_through
from podium.app.run_control import resume as go_on
from podium.app.run_control import retry as go_again
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.identity import approver
from podium.cli.run_host import host
from podium.core.decisions import CallRecord
from podium.core.errors import BadInput, TimedOut
from podium.core.ids import short_id
from podium.core.work import Run
from podium.render.text import escaped_line

cancel_app = command_app()

PATIENCE_SECONDS = 15.0
"""TERM, five seconds, KILL, and some room."""
WAIT_HELP = "Keep the process running while the run waits for a person."
NOTHING_TO_RESUME = "no run can be resumed here; list all with `podium runs`"
MAX_TASK_CHARACTERS = 60


@cancel_app.command()
def cancel(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    why: Annotated[str, typer.Option("--why", help="The reason, for the record.")] = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until all its processes have ended.")
    ] = True,
) -> None:
    """Stop a run and everything it started, whichever process hosts it.

    \b
    Example:
      podium cancel 9d1f5a6b --why "wrong branch"
      podium cancel 9d1f5a6b --no-wait
    """
    cli = CliContext(context.obj, lenient=True)
    cli.must_have_state("run", run)

    async def work(podium: Podium) -> Run:
        engine = await podium.engine()
        wished = await request_cancel(await podium.store(), engine, run, by=cli.user, why=why)
        if wished.status.ended or not wait:
            return wished
        try:
            return await asyncio.wait_for(see_through(engine, wished, wait=True), PATIENCE_SECONDS)
        except TimeoutError:
            raise TimedOut(
                f"run {wished.id} is cancelling and has not ended yet; "
                f"see its host with `podium show {wished.id}`"
            ) from None

    ended = cli.run(work)
    state = ended.status.value if ended.status.ended else "cancelling"
    cli.screen.answer(
        {"run": ended.model_dump(mode="json")},
        lambda: cli.screen.line(f"run {ended.id} {state}"),
    )


resume_app = command_app()


@resume_app.command()
def resume(
    context: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Id of the run, or a short form. Without it: the only run that can be resumed.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help=WAIT_HELP)] = False,
    note: Annotated[
        str, typer.Option("--note", help="Guidance for a run that asked a person.")
    ] = "",
) -> None:
    """Resume a run in this process from its last checkpoint; finished steps do not run again.

    Exits with 0 when the run succeeded, 3 when it waits, 7 when another process hosts it.

    \b
    Example:
      podium resume
      podium resume 9d1f5a6b --note "keep the old name"
    """
    cli = CliContext(context.obj)
    if run is not None:
        cli.must_have_state("run", run)
    elif not cli.has_state:
        raise BadInput(NOTHING_TO_RESUME)

    async def begin(podium: Podium) -> Run:
        store = await podium.store()
        run_id = run or _only_one(await resumable(store, podium.engine))
        return await go_on(store, await podium.hosting_engine(), run_id, note=note, by=cli.user)

    host(cli, begin, wait=wait)


def _only_one(runs: Sequence[Run]) -> str:
    """Id of the run; raises `BadInput` with a command for each where there are several, or none."""
    if not runs:
        raise BadInput(NOTHING_TO_RESUME)
    if len(runs) == 1:
        return runs[0].id
    commands = [
        f"  podium resume {short_id(run.id)}  # {escaped_line(run.task or run.flow, MAX_TASK_CHARACTERS)}"
        for run in runs
    ]
    raise BadInput("\n".join([f"{len(runs)} runs can be resumed; name one:", *commands]))


retry_app = command_app()


@retry_app.command()
def retry(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    from_step: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="STEP", help="Discard the results of this step and all after it."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help=WAIT_HELP)] = False,
) -> None:
    """Run a failed step again; with --from, all steps from that one.

    \b
    Example:
      podium retry 9d1f5a6b --from review
      podium retry 9d1f5a6b
    """
    cli = CliContext(context.obj)
    cli.must_have_state("run", run)

    async def begin(podium: Podium) -> Run:
        store, engine = await podium.store(), await podium.hosting_engine()
        return await go_again(store, engine, run, from_step=from_step, by=cli.user)

    host(cli, begin, wait=wait)


resolve_app = command_app()


@resolve_app.command()
def resolve(
    context: typer.Context,
    call: Annotated[
        str, typer.Argument(metavar="CALL", help="The call's key, as `podium show` prints it.")
    ],
    happened: Annotated[
        bool | None,
        typer.Option("--happened/--not-happened", help="Whether it happened.", show_default=False),
    ] = None,
) -> None:
    """Record whether a call in doubt happened. Check first; then resume its run.

    \b
    Example:
      podium resolve 9d1f5a6b:publish:3f2a9c41d07e.0 --not-happened
      podium resolve 9d1f5a6b:publish:3f2a9c41d07e.0 --happened
    """
    if happened is None:
        raise typer.BadParameter("pass --happened or --not-happened")
    cli = CliContext(context.obj)
    cli.must_have_state("run", call.partition(":")[0])

    who = approver(cli)

    async def work(podium: Podium) -> CallRecord:
        store = await podium.store()
        key = await store.read(lambda view: find_call_key(view, call))
        return await resolve_call(store, podium.clock, key, happened=happened, by=who.name)

    record = cli.run(work)
    state = "happened" if happened else "did not happen"
    cli.screen.answer(
        {"call": record.model_dump(mode="json")},
        lambda: cli.screen.line(
            f"call {record.key} {state}; continue with `podium resume {short_id(record.run_id)}`"
        ),
    )
