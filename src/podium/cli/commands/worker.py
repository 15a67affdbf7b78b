"""`podium worker`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.commands.workers import queue_specs
from podium.cli.context import Door
from podium.cli.queue_worker import WorkerTask, serve_queues, wanted_queues
from podium.core.job import job_of_flow, load
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
            help="What this worker offers to queues that ask for it, such as gpu or repo=app; "
            "several by commas or repeated.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            metavar="N",
            min=1,
            help="Work on at most N runs of each queue at once, instead of what podium.yaml says.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="ADDRESS",
            help="Show Prometheus metrics at this address, such as 127.0.0.1:9464.",
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Leave when nothing goes on by itself any more.")
    ] = False,
) -> None:
    """Host the runs of this project's queues, perform its work orders, and fire its schedules, until Ctrl-C.

    Any number of workers may serve one project, on one machine or, with a PostgreSQL in
    PODIUM_DATABASE_URL, on many; limits hold over all of them. Runs of a worker that died are taken
    over. Without --queue it serves every queue whose labels it has.

    Queue orders is the inbox: every file in bridge/inbox/CLC is performed operation by operation
    through the gate, answered in bridge/outbox/LIAM and put away. Queue sense delivers what the
    sense loop proposed and people approved. With --once neither is waited for longer than a minute.

    With --once it exits with 1 when a run that it worked on failed or was cancelled, with 3 when one
    waits for a person, else with 0.

    \b
    Example:
      podium worker --queue default --once
      podium worker --queue orders --once
      podium worker --label gpu,repo=app --concurrency 8 --metrics 127.0.0.1:9464
    """
    labels = tuple(dict.fromkeys(_split(label or [])))
    door = Door(context.obj)
    door.options.labels = labels
    queues = wanted_queues(queue_specs(door), queue or [], labels)
    if concurrency is not None:
        queues = [each.model_copy(update={"worker_concurrency": concurrency}) for each in queues]
    door.options.ending_words = "ending processes; every run stays at its checkpoint"
    door.options.parting_words = "every run stays at its checkpoint, for the next worker"

    def tell_serving() -> None:
        names = ", ".join(each.name for each in queues)
        door.screen.aside(f"serving {names}; Ctrl-C leaves every run at its checkpoint")

    async def work(podium: Podium) -> list[Run]:
        if metrics is None:
            return await serve_queues(podium, queues, tell_serving, door.screen.aside, once=once)
        from podium.cli.metrics_page import metrics_page

        async with metrics_page(podium, metrics) as url:
            door.screen.aside(f"metrics at {url}")
            return await serve_queues(podium, queues, tell_serving, door.screen.aside, once=once)

    served = door.run(work)
    record = {"queues": [each.name for each in queues], "runs": [_told(run) for run in served]}
    door.screen.answer(record, lambda: None)
    if code := _exit_code(served):
        raise typer.Exit(code)


def _split(given: Sequence[str]) -> list[str]:
    return [label.strip() for each in given for label in each.split(",") if label.strip()]


def _told(run: Run) -> dict[str, Json]:
    reason = run.failure.message if run.failure else run.waiting_for or ""
    told: dict[str, Json] = {"id": run.id, "status": run.status.value}
    if (job := job_of_flow(run.flow)) and job.worker:
        task: type[WorkerTask] = load(job.worker)
        told.update(task.facts(run))
    return {**told, "reason": escaped_line(reason, MAX_REASON)} if reason else told


def _exit_code(served: Sequence[Run]) -> int:
    if any(run.status in (RunStatus.FAILED, RunStatus.CANCELLED) for run in served):
        return FAILED
    return WAITS if any(_waits_for_person(run) for run in served) else 0


def _waits_for_person(run: Run) -> bool:
    if run.status is RunStatus.WAITING:
        names = (run.waiting_for or "").split(", ")
        return any(each.startswith("approval:") for each in names)
    return run.status is RunStatus.NEEDS_HUMAN
