"""What comes after a person's answer: whether its run goes on by itself."""

from __future__ import annotations

from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.ids import short_id
from podium.domain.model import Json, Noun
from podium.domain.work import Run
from podium.usecases import CANDIDATE, how_they_stand
from podium.wiring import Podium


class Answered(Noun):
    """An approval after its answer, and what is left to do for its run."""

    approval: Approval
    hosted: bool = False
    next: str = ""
    """How the run goes on; empty when it does so by itself, or not at all."""

    def record(self) -> dict[str, Json]:
        return {
            "approval": self.approval.model_dump(mode="json"),
            "hosted": self.hosted,
            "next": self.next,
        }


async def answered(podium: Podium, approval: Approval) -> Answered:
    """How things stand with the run of an approval that was just answered."""
    store = await podium.store()
    run = await store.read(lambda view: view.run(approval.run_id))
    if run is None or approval.status is ApprovalStatus.PENDING:
        return Answered(approval=approval)
    if run.flow == CANDIDATE:
        # Late: most answers are about nothing that the sense loop proposed.
        from podium.cli.sense_answering import next_of_candidate

        yes = approval.status is ApprovalStatus.GRANTED
        return Answered(approval=approval, next=await next_of_candidate(podium, run, yes=yes))
    if run.status.ended:
        return Answered(approval=approval)
    (stands,) = await how_they_stand([run], podium.engine)
    return Answered(approval=approval, hosted=stands.hosted, next=_next(run, stands.hosted))


def _next(run: Run, hosted: bool) -> str:
    if hosted:
        return ""
    if run.queue is not None:
        return f"a worker goes on with run {short_id(run.id)}; `podium worker` is one"
    return f"nobody hosts run {short_id(run.id)}: `podium resume {short_id(run.id)}` goes on"
