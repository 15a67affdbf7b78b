"""Request for a tick, from any interface."""

from __future__ import annotations

from podium.app.submission import ASKED_BY, Submission
from podium.core.model import FrozenModel
from podium.core.work import Run
from podium.jobs.sense import begin_tick
from podium.jobs.sense.composition import sense_queue, tick_deps


class TickRequest(FrozenModel):
    """Nothing can be said of a tick."""


async def submit(submission: Submission) -> Run:
    submission.refuse_queue_slot()
    queue = sense_queue(submission.podium.configuration).name
    deps = await tick_deps(submission.podium)
    return await begin_tick(deps, queue=queue, settings={ASKED_BY: submission.by})
