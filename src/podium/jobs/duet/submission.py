"""Request for a task of a pair, from any interface."""

from __future__ import annotations

from typing import Annotated

from podium.app.work_request import Few, Submission
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, NonEmpty
from podium.core.work import Run
from podium.jobs.duet.models import DUET
from podium.jobs.duet.task_control import queued_duet


class DuetRequest(FrozenModel):
    """Options of a task for a pair."""

    pairs: Annotated[tuple[NonEmpty, ...], Few] = ()
    """Pairs that may do it. Empty: every pair there is."""


async def submit(submission: Submission) -> Run:
    if submission.request.queue not in ("", DUET):
        raise BadInput(f"duet tasks wait in queue {DUET!r}; leave out `queue`")
    podium = submission.podium
    job = queued_duet(podium, submission.text, submission.options.pairs, podium.environ)
    return await submission.start(job.model_dump(mode="json"), task=job.text, queue=DUET)
