"""Submission of work from any interface: a validated request becomes a run in a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.work_request import (
    QUEUE,
    DuetWish,
    OperatorWords,
    PipelineWish,
    PlaybookWish,
    SenseWish,
    Wish,
    option_schemas,
    options_of,
    queue_named,
)
from podium.core.approval_steps import approval_named_in
from podium.core.approvals import Approver
from podium.core.errors import BadInput, CallRefused, NotPossibleNow, UnknownId
from podium.core.model import Json
from podium.core.work import Run
from podium.jobs.duet.models import DUET
from podium.jobs.operator.models import OperatorAnswer, OperatorMode

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.operator.composition import WorkerIsThere


__all__ = ["Wish", "ask", "asked_by", "option_schemas", "plain_text", "submit"]

ASKED_BY = "asked_by"
"""Where a run's settings say who wished for it."""
QUICK_MODES = (OperatorMode.ANALYZE, OperatorMode.PLAN, OperatorMode.ENQUEUE)
"""What the operator answers at once."""


@dataclass(frozen=True)
class _Job:
    """A run that can be stored: everything was looked at."""

    input: Json
    task: str
    queue: str


async def submit(
    podium: Podium,
    wish: Wish,
    *,
    by: str,
    provenance: tuple[str, ...] = (),
    may_approve: bool = False,
    approver: Approver | None = None,
) -> Run:
    """Store the run for whoever serves its queue, and who wished for it. It is durable on return.

    `provenance` names who said the words when no person at a door did; `may_approve` is for people whose yes
    the door takes, `approver` their proof. Raises what the flow's own command does, before anything is stored: `BadInput`,
    `NotPossibleNow`, `CallRefused`.
    """
    options, text = options_of(wish), plain_text(wish.text)
    if isinstance(options, OperatorWords):
        _refuse_place(wish)
        if options.approve and not may_approve:
            raise CallRefused(f"{by} is no approver; start it without a yes to its plan")
        return await _operator(
            podium, text, options, by=by, provenance=provenance, approver=approver
        )
    if isinstance(options, SenseWish):
        _refuse_place(wish)
        return await _sense(podium, by)
    job = await _job(podium, text, options, wish.queue)
    engine = await podium.hosting_engine()
    return await engine.start(
        wish.flow,
        job.input,
        task=job.task,
        queue=job.queue,
        priority=wish.priority,
        delay_seconds=wish.delay_seconds,
        settings={**podium.configuration.terms(), ASKED_BY: by},
    )


async def ask(
    podium: Podium,
    text: str,
    *,
    mode: str,
    context: Mapping[str, Json] | None = None,
    pack: str = "",
    approve: bool = False,
    by: str = "",
    provenance: tuple[str, ...] = (),
    worker_is_there: WorkerIsThere | None = None,
    approver: Approver | None = None,
) -> OperatorAnswer:
    """The operator's answer to a message, in a mode that is answered at once.

    Raises `BadInput` for a mode that waits for the end of a run, and for words that would approve something: each
    door has its own way of knowing who says yes.
    """
    from podium.jobs.operator.composition import OperatorWish, build_selection, operator_options

    if mode not in QUICK_MODES:
        known = ", ".join(QUICK_MODES)
        raise BadInput(
            f"mode {mode[:60]!r} is not answered at once here; modes: {known}. Enqueue it and follow the run"
        )
    if (action_id := approval_named_in(text)) is not None:
        raise BadInput(
            f"an approval is no message here: `podium approve {action_id}` says yes, and so does its card"
        )
    if approve and provenance:
        raise BadInput(f"an approval is a person's; {', '.join(provenance)} cannot give one")
    if mode == OperatorMode.ENQUEUE:
        queue_named(podium.configuration, operator_options(podium).queue)
    proved = (lambda: approver) if approver else None
    wish = OperatorWish(pack, user=by, worker_is_there=worker_is_there, approver=proved)
    operator = await build_selection(podium, wish)
    return await operator.process(text, mode, context, approve, provenance=provenance)


def asked_by(run: Run) -> str:
    """Who wished for a run. Empty: it was started at the command line, or by another run."""
    said = run.input.get(ASKED_BY) if isinstance(run.input, dict) else None
    return str(run.settings.get(ASKED_BY) or said or "")


def plain_text(text: str) -> str:
    """The words as they are. Raises `BadInput` for what no text has."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadInput("the task is no UTF-8 text; save it as such")
    if "\0" in text:
        raise BadInput("the task holds a NUL byte, which no text has; save it as plain text")
    return text


def _refuse_place(wish: Wish) -> None:
    if wish.queue or wish.priority or wish.delay_seconds:
        raise BadInput(
            f"{wish.flow} has its own queue, in which all are equal; leave out queue, priority and delay_seconds"
        )


async def _operator(
    podium: Podium,
    text: str,
    options: OperatorWords,
    *,
    by: str,
    provenance: tuple[str, ...],
    approver: Approver | None,
) -> Run:
    answer = await ask(
        podium,
        text,
        mode=OperatorMode.ENQUEUE,
        context=options.context,
        pack=options.pack,
        approve=options.approve,
        by=by,
        provenance=provenance,
        approver=approver,
    )
    if answer.run_id is None:
        raise NotPossibleNow(f"the operator began nothing: {answer.status}: {_why(answer)}")
    store, run_id = await podium.store(), answer.run_id
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", run_id)
    return run


def _why(answer: OperatorAnswer) -> str:
    said = answer.classification
    words = (said.question, said.reasoning, *said.missing_evidence) if said else ()
    return "; ".join(word for word in (*words, *answer.next_actions) if word)[:1000]


async def _sense(podium: Podium, by: str) -> Run:
    from podium.jobs.sense import begin_tick
    from podium.jobs.sense.composition import sense_queue, tick_kit

    queue = sense_queue(podium.configuration).name
    return await begin_tick(await tick_kit(podium), queue=queue, settings={ASKED_BY: by})


async def _job(
    podium: Podium, text: str, told: PipelineWish | PlaybookWish | DuetWish, queue: str
) -> _Job:
    match told:
        case PipelineWish():
            return await _pipeline(podium, text, told, queue)
        case PlaybookWish():
            return _playbook(podium, text, told, queue)
        case DuetWish():
            return _duet(podium, text, told, queue)


async def _pipeline(podium: Podium, text: str, told: PipelineWish, queue: str) -> _Job:
    from podium.jobs.pipeline.composition import pipeline_job

    spec = queue_named(podium.configuration, queue or QUEUE)
    job = await pipeline_job(podium, text, **told.model_dump())
    return _Job(job.model_dump(mode="json"), job.task, spec.name)


def _playbook(podium: Podium, text: str, told: PlaybookWish, queue: str) -> _Job:
    from podium.jobs.playbook.composition import job_of_files

    spec = queue_named(podium.configuration, queue or QUEUE)
    project = podium.folders.project
    job = job_of_files(
        podium,
        _beneath(project, text, "the playbook"),
        profile=_beneath(project, told.profile, "profile") if told.profile else None,
        root=_beneath(project, told.root, "root") if told.root else None,
        agent=told.agent,
        inputs=told.inputs,
        dry_run=told.dry_run,
    )
    return _Job(job.model_dump(mode="json"), job.playbook.head.name, spec.name)


def _beneath(project: Path, written: str, what: str) -> Path:
    """A path of the project. Who is not at this machine's command line reads no file beside it."""
    if not written.strip():
        raise BadInput(f"{what} is not named; name a file of the project")
    path = project / written
    if not path.resolve().is_relative_to(project.resolve()):
        raise BadInput(f"{what} {written[:200]!r} is not beneath the project; name one that is")
    return path


def _duet(podium: Podium, text: str, told: DuetWish, queue: str) -> _Job:
    from podium.jobs.duet.task_control import queued_duet

    if queue not in ("", DUET):
        raise BadInput(f"tasks for two wait in queue {DUET!r}; leave out queue")
    job = queued_duet(podium, text, told.pairs, podium.environ)
    return _Job(job.model_dump(mode="json"), job.text, DUET)
