"""Request for a task that becomes a branch, from any interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from podium.app.run_branch import BranchWork, Document
from podium.app.run_timeline import newest_events
from podium.app.work_request import Submission, WorkRequest
from podium.app.work_request import submit as submit_request
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.core.work import Run
from podium.jobs.pipeline.composition import pipeline_job
from podium.jobs.pipeline.events import StageEnded
from podium.jobs.pipeline.spec import pipeline_spec

if TYPE_CHECKING:
    from podium.app.app import Podium


class PipelineRequest(FrozenModel):
    """Options of a request for the pipeline."""

    mode: str = "direct"
    """Mode, such as direct, bugfix or research."""
    agent: str = ""
    """The agent of podium.yaml that plays every role. Empty: as the roles say."""
    base: str = ""
    """The branch to start from, and to merge to. Empty: the one that is checked out."""


async def submit(submission: Submission) -> Run:
    queue = submission.queue()
    job = await pipeline_job(submission.podium, submission.text, **submission.options.model_dump())
    return await submission.start(job.model_dump(mode="json"), task=job.task, queue=queue)


async def answer_chat(podium: Podium, text: str, by: str) -> str:
    """Queue the task that somebody writes in a chat."""
    run = await submit_request(podium, WorkRequest(flow="pipeline", text=text), by=by)
    run_id = short_id(run.id)
    return f"Run {run_id} is queued. See its progress with `status {run_id}`."


def option_choices(podium: Podium) -> Mapping[str, Iterable[str]]:
    """Values that options of a request can have. Raises `ConfigInvalid`."""
    modes = pipeline_spec(podium.configuration).modes
    return {"mode": modes, "agent": podium.settings.agents}


MAX_STAGES = 500


async def branch_work(podium: Podium, run: Run) -> BranchWork:
    """Documents that the roles wrote, and the last commit of a stage."""
    events = await newest_events(await podium.store(), run.id, ("stage_ended",), most=MAX_STAGES)
    stages = [event.body for event in events if isinstance(event.body, StageEnded)]
    documents: dict[str, Document] = {}
    for stage in stages:
        if stage.document and stage.commit:
            documents.pop(stage.document, None)
            documents[stage.document] = Document(
                path=stage.document, role=stage.role, verdict=stage.verdict, commit=stage.commit
            )
    tip = next((stage.commit for stage in reversed(stages) if stage.commit), "")
    return BranchWork(documents=tuple(documents.values()), tip=tip)
