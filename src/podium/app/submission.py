"""Submission of work from any interface: a validated request becomes a run in a queue, by the job that it is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.app.work_request import QUEUE, WorkRequest, option_schemas, options_of, queue_named
from podium.core.approvals import Approver
from podium.core.errors import BadInput
from podium.core.job import job_of_flow, load
from podium.core.model import Json
from podium.core.work import Run

if TYPE_CHECKING:
    from podium.app.app import Podium

__all__ = ["Submission", "WorkRequest", "asked_by", "option_schemas", "plain_text", "submit"]

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
                f"{self.request.flow} has its own queue, in which all are equal; leave out queue, priority and delay_seconds"
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
        raise BadInput(f"job {request.flow!r} takes no requests")
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
        raise BadInput("the task holds a NUL byte, which no text has; save it as plain text")
    return text
