"""`podium worker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.commands.workers import queue_specs
from podium.cli.context import CliContext
from podium.cli.queue_worker import WorkerTask, select_queues, serve_queues
from podium.core.job import job_of_flow, load_part
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.render.text import escaped_line

app = command_app()

MAX_REASON = 500
FAILED, WAITS = 1, 3


@app.command()
def worker(
    context: typer.Context,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Serve this queue only; may be repeated."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="LABEL",
            help="Label this worker offers to queues that need it, such as gpu or repo=app; "
            "separate several by commas, or repeat.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            help="Run at most N runs of each queue at once, overriding podium.yaml.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="ADDRESS",
            help="Serve Prometheus metrics at this address, such as 127.0.0.1:9464.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Exit when no run can continue by itself.")
    ] = False,
) -> None:
    """Host queued runs, perform work orders and fire schedules until Ctrl-C.

    Any number of workers may serve one project, on one machine or, with a PostgreSQL in
    PODIUM_DATABASE_URL, on many; limits apply across all of them. Runs of a dead worker are taken
    over. Without --queue it serves every queue whose labels it offers.

    Queue orders is the inbox: every file in bridge/inbox/CLC is performed operation by operation
    through the gate, answered in bridge/outbox/LIAM and archived. Queue sense delivers what the
    sense loop proposed and people approved. With --once it waits at most a minute for either.

    With --once it exits with 1 when a run it worked on failed or was cancelled, with 3 when one
    waits for a person, otherwise with 0.

    \b
    Example:
      podium worker --queue default --once
      podium worker --queue orders --once
      podium worker --label gpu,repo=app --concurrency 8 --metrics 127.0.0.1:9464
    """
    labels = tuple(dict.fromkeys(_split(label or [])))
    cli = CliContext(context.obj)
    cli.options.labels = labels
    queues = select_queues(queue_specs(cli), queue or [], labels)
    if concurrency is not None:
        queues = [queue.model_copy(update={"worker_concurrency": concurrency}) for queue in queues]
    cli.options.ending_note = "stopping; every run stays at its checkpoint"
    cli.options.parting_note = "every run stays at its checkpoint, for the next worker"

    def on_serving() -> None:
        names = ", ".join(queue.name for queue in queues)
        cli.screen.stderr_line(f"serving {names}; Ctrl-C leaves every run at its checkpoint")

    async def work(podium: Podium) -> list[Run]:
        if metrics is None:
            return await serve_queues(podium, queues, on_serving, cli.screen.stderr_line, once=once)
        from podium.cli.metrics_page import metrics_page

        async with metrics_page(podium, metrics) as url:
            cli.screen.stderr_line(f"metrics at {url}")
            return await serve_queues(podium, queues, on_serving, cli.screen.stderr_line, once=once)

    served = cli.run(work)
    record = {
        "queues": [queue.name for queue in queues],
        "runs": [_run_record(run) for run in served],
    }
    cli.screen.answer(record, lambda: None)
    if code := _exit_code(served):
        raise typer.Exit(code)


def _split(values: Sequence[str]) -> list[str]:
    return [label.strip() for value in values for label in value.split(",") if label.strip()]


def _run_record(run: Run) -> dict[str, Json]:
    reason = run.failure.message if run.failure else run.waiting_for or ""
    record: dict[str, Json] = {"id": run.id, "status": run.status.value}
    task: type[WorkerTask] | None = load_part(job_of_flow(run.flow), "worker")
    if task is not None:
        record.update(task.facts(run))
    return {**record, "reason": escaped_line(reason, MAX_REASON)} if reason else record


def _exit_code(served: Sequence[Run]) -> int:
    if any(run.status in (RunStatus.FAILED, RunStatus.CANCELLED) for run in served):
        return FAILED
    return WAITS if any(_waits_for_person(run) for run in served) else 0


def _waits_for_person(run: Run) -> bool:
    if run.status is RunStatus.WAITING:
        names = (run.waiting_for or "").split(", ")
        return any(name.startswith("approval:") for name in names)
    return run.status is RunStatus.NEEDS_HUMAN
