"""Request for work: flow, text, options and queue slot, and its submission as a run in a queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails, PydanticKnownError

from podium.config.configuration import Configuration
from podium.core.approvals import Approver
from podium.core.errors import BadInput
from podium.core.job import all_jobs, built_in_jobs, job_of_flow, load
from podium.core.model import FrozenModel, Json
from podium.core.work import QueueSpec, Run

if TYPE_CHECKING:
    from podium.app.app import Podium

QUEUE = "default"
MAX_PRIORITY = 1_000_000
MAX_DELAY_SECONDS = 366 * 86_400.0

Priority = Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]
Delay = Annotated[float, Field(ge=0, le=MAX_DELAY_SECONDS, allow_inf_nan=False)]


class QueueSlot(FrozenModel):
    """Queue, priority and delay of a run."""

    queue: str = QUEUE
    priority: Priority = 0
    """Higher goes first."""
    delay_seconds: float = 0.0


def queues_of(configuration: Configuration) -> tuple[QueueSpec, ...]:
    """The queues of the settings; a project that names none has one. Behind them those of the jobs."""
    named = _named(configuration)
    names = {spec.name for spec in named}
    own = [spec for job in all_jobs() if job.queues for spec in load(job.queues)(configuration)]
    return (*named, *(spec for spec in own if spec.name not in names))


def queue_named(configuration: Configuration, name: str) -> QueueSpec:
    """The queue that runs may be handed to by this name. Raises `BadInput`."""
    specs = {spec.name: spec for spec in _named(configuration)}
    if name not in specs:
        raise BadInput(
            f"podium.yaml has no queue {name!r}; queues: {', '.join(sorted(specs))}. Pass one with --queue, "
            f"or add `{name}: {{}}` to its queues"
        )
    return specs[name]


def answered_queue(configuration: Configuration, served: Sequence[QueueSpec]) -> str:
    """The queue that answered runs of the foreground join, of those that a worker serves. Empty: none.

    Such a run asked for no labels, and queues of work orders and duets have runs of their own alone.
    """
    names = {spec.name for spec in _named(configuration) if not spec.labels}
    fitting = [spec.name for spec in served if spec.name in names]
    return QUEUE if QUEUE in fitting else next(iter(fitting), "")


def _named(configuration: Configuration) -> tuple[QueueSpec, ...]:
    return configuration.settings.queue_specs() or (QueueSpec(name=QUEUE),)


def request_model(name: str) -> type[FrozenModel]:
    """Model of what a request to this job may say. Raises `BadInput` for a job that takes none."""
    job = job_of_flow(name)
    if job is None or not job.request:
        raise BadInput(f"job {name!r} does not accept requests")
    model: type[FrozenModel] = load(job.request)
    return model


def request_models() -> dict[str, type[FrozenModel]]:
    """Model of what a request may say, by the name of the job that takes it."""
    return {job.name: load(job.request) for job in all_jobs() if job.request}


def _checked_job(name: str) -> str:
    """Raise the error that a literal of the jobs' names would."""
    names = [job.name for job in all_jobs() if job.request]
    if name not in names:
        first, last = names[:-1], names[-1]
        expected = ", ".join(map(repr, first)) + f" or {last!r}"
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


FlowName = Annotated[
    str,
    AfterValidator(_checked_job),
    WithJsonSchema(
        {"type": "string", "enum": [job.name for job in built_in_jobs() if job.request]}
    ),
]
"""Name of a job that takes requests."""

Few = Field(max_length=1000)
MAX_DEPTH = 40


def _shallow(options: dict[str, Json]) -> dict[str, Json]:
    """Refuse what is nested beyond what anybody writes, before it is walked through by itself again and again."""
    level: list[Json] = [options]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _within(value)]
        if not level:
            return options
    raise ValueError(f"nested more than {MAX_DEPTH} levels deep; flatten it")


def _within(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


ShallowJson = Annotated[dict[str, Json], AfterValidator(_shallow)]
"""JSON object of limited depth."""


class WorkRequest(FrozenModel):
    """Work that somebody wants done."""

    flow: FlowName
    text: str = ""
    """The task; for the operator the message, for a playbook its file, for sense nothing."""
    options: ShallowJson = Field(default_factory=dict)
    """Options of the flow; see `option_schemas`."""
    queue: str = ""
    """Queue of the run. Empty: the flow's own queue."""
    priority: Priority = 0
    """Higher goes first."""
    delay_seconds: Delay = 0.0
    """Not before so much time has passed."""


def option_schemas() -> dict[str, dict[str, Json]]:
    """Flow → JSON Schema of what it may be told."""
    return {name: model.model_json_schema() for name, model in request_models().items()}


def options_of(request: WorkRequest) -> FrozenModel:
    """Options of the request, validated by the model of its flow. Raises `BadInput` that lists the known options."""
    shape = request_model(request.flow)
    try:
        return shape.model_validate(request.options)
    except ValidationError as error:
        names = ", ".join(sorted(shape.model_fields)) or "none"
        problems = "; ".join(_problem(detail) for detail in error.errors(include_url=False))
        raise BadInput(f"{request.flow}: {problems[:1000]}; options: {names}") from None


def _problem(detail: ErrorDetails) -> str:
    named = ".".join(str(part)[:60] for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"unknown option {named!r}"
    return f"option {named!r}: {detail['msg']}"


ASKED_BY = "asked_by"
"""Key of a run's settings: who asked for it."""


@dataclass(frozen=True)
class Submission:
    """A validated request, as a job gets it."""

    podium: Podium
    request: WorkRequest
    text: str
    options: Any
    """In the model of the job."""
    by: str
    provenance: tuple[str, ...] = ()
    """Sources of the text when it is not from a person at an interface."""
    may_approve: bool = False
    approver: Approver | None = None

    def queue(self) -> str:
        """Queue that the request names, or the default one. Raises `BadInput` for an unknown one."""
        return queue_named(self.podium.configuration, self.request.queue or QUEUE).name

    def refuse_queue_slot(self) -> None:
        """Raise `BadInput` for a queue, priority or delay: the job has one queue, in which all are equal."""
        if self.request.queue or self.request.priority or self.request.delay_seconds:
            raise BadInput(
                f"{self.request.flow} has its own queue without priorities; leave out queue, priority and delay_seconds"
            )

    async def start(self, job: Json, *, task: str, queue: str) -> Run:
        """Store the run, with who asked for it."""
        engine = await self.podium.hosting_engine()
        return await engine.start(
            self.request.flow,
            job,
            task=task,
            queue=queue,
            priority=self.request.priority,
            delay_seconds=self.request.delay_seconds,
            settings={**self.podium.configuration.run_settings(), ASKED_BY: self.by},
        )


async def submit(
    podium: Podium,
    request: WorkRequest,
    *,
    by: str,
    provenance: tuple[str, ...] = (),
    may_approve: bool = False,
    approver: Approver | None = None,
) -> Run:
    """Store the run for whoever serves its queue, and who asked for it. It is durable on return.

    `provenance` names who said the words when no person at an interface did; `may_approve` is for people whose approval
    the interface takes, `approver` their proof. Raises what the job's own command does, before anything is stored: `BadInput`,
    `NotPossibleNow`, `CallRefused`.
    """
    submission = Submission(
        podium,
        request,
        plain_text(request.text),
        options_of(request),
        by=by,
        provenance=provenance,
        may_approve=may_approve,
        approver=approver,
    )
    job = job_of_flow(request.flow)
    if job is None or not job.submit:
        raise BadInput(f"job {request.flow!r} does not accept requests")
    take: Callable[[Submission], Awaitable[Run]] = load(job.submit)
    return await take(submission)


def asked_by(run: Run) -> str:
    """Name of the person who requested a run. Empty: it was started at the command line, or by another run."""
    from_input = run.input.get(ASKED_BY) if isinstance(run.input, dict) else None
    return str(run.settings.get(ASKED_BY) or from_input or "")


def plain_text(text: str) -> str:
    """The words as they are. Raises `BadInput` for what no text has."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise BadInput("the task is not valid UTF-8; save it as UTF-8")
    if "\0" in text:
        raise BadInput("the task contains a NUL byte; save it as plain text")
    return text
