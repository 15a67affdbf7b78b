"""What comes after a person's answer: whether its run goes on by itself."""

from __future__ import annotations

from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Json, Noun
from podium.usecases import CANDIDATE, how_it_continues
from podium.wiring import Podium


class Answered(Noun):
    """An approval after its answer, and what is left to do for its run."""

    approval: Approval
    hosted: bool = False
    continues: bool = False
    """The run goes on by itself."""
    next: str = ""
    """How the run goes on; empty when it does so by itself, or not at all."""

    def record(self) -> dict[str, Json]:
        return {
            "approval": self.approval.model_dump(mode="json"),
            "hosted": self.hosted,
            "continues": self.continues,
            "next": self.next,
        }


async def answered(podium: Podium, approval: Approval) -> Answered:
    """How things stand with the run of an approval that was just answered."""
    store = await podium.store()
    run = await store.read(lambda view: view.run(approval.run_id))
    if run is not None and run.flow == CANDIDATE and approval.status is not ApprovalStatus.PENDING:
        # Late: most answers are about nothing that the sense loop proposed.
        from podium.cli.sense_answering import next_of_candidate

        yes = approval.status is ApprovalStatus.GRANTED
        return Answered(approval=approval, next=await next_of_candidate(podium, run, yes=yes))
    goes_on = await how_it_continues(store, podium.engine, approval)
    return Answered(
        approval=approval, hosted=goes_on.hosted, continues=goes_on.continues, next=goes_on.next
    )
